#include "units.hpp"

void lock_in_the_other_unit(zklock::mutex &mutex) { mutex.lock(); }

zklock::hold acquire_in_the_other_unit(const zklock::client &client, const std::string &path) {
    return client.mutex(path).acquire_for(SOON);
}
