/* Two units that include zklock.hpp are linked into one program, and pass its objects to each other. */

#include <mutex>

#include "units.hpp"

TEST(units_share_their_objects_and_exceptions) {
    const auto client = new_cpp_client();
    zklock::mutex mutex(client, fresh_path());
    lock_in_the_other_unit(mutex);
    std::unique_lock guard(mutex, std::adopt_lock);
    THROWS(acquire_in_the_other_unit(client, "no-slash"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
    const auto hold = acquire_in_the_other_unit(client, fresh_path());
    CHECK(hold.state() == zklock::state::held && mutex.current()->state() == zklock::state::held);
}

TEST_MAIN("standalone max-session=4000")
