/* The base of every class that owns a handle of zklock.h. */

#ifndef ZKLOCK_HANDLE_HPP
#define ZKLOCK_HANDLE_HPP

#include <forward_list>
#include <memory>
#include <optional>

#include "call.hpp"

namespace zklock {
template <class Result>
class async_call;

/** Not for use outside these files. */
namespace detail {
/** Owns a handle of zklock.h, and makes calls with it. */
template <class Handle, void (*Free)(Handle *)>
class owner {
public:
    explicit owner(Handle *owned) noexcept : handle_(owned) {}
    /** The handle. This object still owns it. */
    Handle *get() const noexcept { return handle_.get(); }
protected:
    template <class Value, class Call, class... Given>
    Value ask(Call call, Given... given) const {
        return detail::ask<Value>(call, get(), given...);
    }

    /** Starts a call in the background. */
    template <class Result, class Call, class... Given>
    async_call<Result> begun(Call call, Given... given) const {
        return async_call<Result>(ask<zklock_call *>(call, given...));
    }

    /** Like ask(), for calls where one status is not an error, but means that there is nothing. */
    template <class Result, class Value, class Call, class... Given>
    std::optional<Result> ask_unless(zklock_status nothing, Call call, Given... given) const {
        Value value{};
        const zklock_status status = call(get(), given..., &value);
        if (status == nothing) return std::nullopt;
        check(status);
        return static_cast<Result>(value);
    }

    /** Objects that the library may use until the handle is freed. They keep their addresses when this object is moved. */
    std::forward_list<std::shared_ptr<void>> &kept() noexcept { return handle_.get_deleter().kept; }
private:
    /** `kept` is in the deleter because a unique_ptr frees its pointer before its deleter, on destruction and on assignment. */
    struct freed {
        void operator()(Handle *handle) const noexcept { Free(handle); }
        std::forward_list<std::shared_ptr<void>> kept;
    };
    std::unique_ptr<Handle, freed> handle_;
};
} // namespace detail
} // namespace zklock

#endif // ZKLOCK_HANDLE_HPP
