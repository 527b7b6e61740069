/* Events of a client and of everything that it made, through one descriptor. */

#ifndef ZKLOCK_EVENT_HPP
#define ZKLOCK_EVENT_HPP

#include "async_call.hpp"
#include "hold.hpp"
#include "observer.hpp"

namespace zklock {

/**
 * An event from client::next_event(): see event_kind. You still own the object that it is about. Find that object by its
 * context, or compare with is_of().
 */
struct event {
    event_kind kind;
    /** The pointer that was given to set_context() of the call or the hold. */
    void *context;
    /** Whether the event is about this object. An event of a start_release() is about the call and the hold. */
    bool is_of(const detail::running &it) const noexcept { return call && call == it.get(); }
    bool is_of(const zklock::hold &it) const noexcept { return hold && hold == it.get(); }
    bool is_of(const zklock::observer &it) const noexcept { return observer && observer == it.get(); }
    /** Not for use outside these files. */
    const void *call, *hold, *observer;
};
} // namespace zklock

#endif // ZKLOCK_EVENT_HPP
