/* Helpers for tests in C++, in addition to test.h. */

#ifndef ZKLOCK_TEST_HPP
#define ZKLOCK_TEST_HPP

#include <chrono>
#include <exception>
#include <future>
#include <string>
#include <typeinfo>
#include <utility>

#include <zklock.hpp>

#include "test.h"

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds SESSION{SESSION_MS};
constexpr std::chrono::milliseconds SOON{SOON_MS};

/* The call must throw exactly this class, with this status and a message. */
#define THROWS(call, kind, wanted)                                                                       \
    do {                                                                                                 \
        bool thrown_ = false;                                                                            \
        try {                                                                                            \
            (void)(call);                                                                                \
        } catch (const zklock::error &error_) {                                                          \
            thrown_ = true;                                                                              \
            check_status(__FILE__, __LINE__, #call, static_cast<zklock_status>(error_.status()), (wanted));                          \
            if (typeid(error_) != typeid(kind)) failed(__FILE__, __LINE__, "not " #kind ": %s", #call);  \
            if (!*error_.what()) failed(__FILE__, __LINE__, "no sentence: %s", #call);                   \
        }                                                                                                \
        if (!thrown_) failed(__FILE__, __LINE__, "does not throw: %s", #call);                           \
    } while (0)

inline zklock::client new_cpp_client(const std::string &hosts = servers()) {
    return zklock::client(hosts, zklock::options().set("session-timeout", SESSION).set("try-timeout", SOON));
}

template <class Work>
auto in_background(Work work) {
    return std::async(std::launch::async, std::move(work));
}

/* The result of the future, which must come soon. */
template <class Value>
Value soon(std::future<Value> &future) {
    if (future.wait_for(SOON) != std::future_status::ready) failed(__FILE__, __LINE__, "it never came");
    return future.get();
}

template <class Value>
Value soon(std::future<Value> &&future) {
    return soon(future);
}

inline void delete_node(const std::string &node) { ground("delete %s", node.c_str()); }

/* Whether the lock is free, and releases it at once. */
inline bool is_had(const zklock::lock &lock) {
    auto hold = lock.try_acquire();
    if (hold) hold->release();
    return hold.has_value();
}

inline bool is_free(const zklock::client &other, const std::string &path) { return is_had(other.mutex(path)); }

#endif
