/* Functions of the second unit that the first one calls. */

#ifndef ZKLOCK_TEST_UNITS_HPP
#define ZKLOCK_TEST_UNITS_HPP

#include "../test.hpp"

void lock_in_the_other_unit(zklock::mutex &mutex);
zklock::hold acquire_in_the_other_unit(const zklock::client &client, const std::string &path);

#endif
