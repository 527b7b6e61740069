/* Barriers in C++. */

#include <optional>
#include <vector>

#include "test.hpp"

static_assert(std::is_nothrow_move_constructible_v<zklock::barrier> && !std::is_copy_constructible_v<zklock::barrier>);
static_assert(std::is_nothrow_move_constructible_v<zklock::member> && !std::is_copy_constructible_v<zklock::member>);

TEST(all_wait_until_the_barrier_is_removed) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const zklock::barrier barrier(client, path), others(other, path);
    others.wait();
    CHECK(!barrier.is_set() && barrier.set() && !others.set() && others.is_set());
    CHECK(!others.wait_for(0s) && !others.wait_for(50ms));
    auto waiting = in_background([&] { others.wait(); });
    CHECK(waiting.wait_for(30ms) == std::future_status::timeout);
    CHECK(barrier.remove() && !others.remove());
    soon(waiting);
    CHECK(others.wait_for(SOON));
    THROWS(zklock::barrier(client, "no-slash"), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(members_begin_together_and_end_together) {
    const auto client = new_cpp_client(), other = new_cpp_client();
    const std::string path = fresh_path();
    const zklock::double_barrier barrier(client, path, 2), others(other, path, 2);
    CHECK(!barrier.enter_for(50ms));
    auto waiting = in_background([&] { return barrier.enter(); });
    std::optional<zklock::member> second = others.enter_for(SOON);
    CHECK(second.has_value());
    zklock::member first = soon(waiting);
    CHECK(first.node().find(path) == 0 && first.node() != second->node());
    CHECK(first.lost_reason() == zklock::reason::none);
    CHECK(!first.leave_for(50ms));
    THROWS(first.leave(), zklock::misuse_error, ZKLOCK_NOT_HELD);
    second.reset();
    /* The next round. */
    auto again = in_background([&] { barrier.enter().leave(); });
    others.enter().leave();
    soon(again);
    THROWS(zklock::double_barrier(client, path, 0), zklock::misuse_error, ZKLOCK_INVALID_ARGUMENT);
}

TEST(a_member_whose_node_is_deleted_is_told_when_it_leaves) {
    const auto client = new_cpp_client();
    const zklock::double_barrier barrier(client, fresh_path(), 1);
    zklock::member member = barrier.enter();
    delete_node(member.node());
    THROWS(member.leave(), zklock::lost_error, ZKLOCK_LOST);
}

TEST_MAIN("standalone max-session=4000", LISTED(all_wait_until_the_barrier_is_removed),
          LISTED(members_begin_together_and_end_together), LISTED(a_member_whose_node_is_deleted_is_told_when_it_leaves))
