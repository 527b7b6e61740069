// c++ -std=c++17 asio.cpp -pthread $(pkg-config --cflags --libs zklock)
#include <boost/asio.hpp> // standalone: <asio.hpp>, std::error_code
#include <iostream>
#include <optional>
#include <zklock.hpp>

namespace asio = boost::asio;
constexpr std::chrono::milliseconds WAIT_MS{30000}, WORK_MS{100};

class worker {
public:
    explicit worker(asio::io_context &loop)
        : client_(zklock::client::lazy("127.0.0.1:2181")), readable_(loop, client_.fd()), work_(loop),
          acquiring_(client_.mutex("/locks/report").start(WAIT_MS)) {
        wait();
    }
    ~worker() { readable_.release(); } // otherwise Asio closes the descriptor, which is the client's
    int close() {
        client_.close();
        return status_;
    }

private:
    void wait() {
        readable_.async_wait(asio::posix::descriptor_base::wait_read, [this](boost::system::error_code error) {
            if (error) return leave(error.message().c_str());
            while (const std::optional<zklock::event> event = client_.next_event()) {
                try {
                    on_event(*event);
                } catch (const zklock::error &failure) {
                    leave(failure.what());
                }
            }
            if (!ended_) wait(); // otherwise the loop has nothing to wait for, and ends
        });
    }
    void on_event(const zklock::event &event) {
        if (event.is_of(acquiring_)) {
            hold_ = acquiring_.try_finish(); // it throws what acquire_for() does
            std::cout << "held" << std::endl;
            work_.expires_after(WORK_MS);
            work_.async_wait([this](boost::system::error_code error) {
                if (!error && hold_) end_work();
            });
        } else if (event.kind == zklock::event_kind::lost) {
            work_.cancel();
            hold_.reset();
            leave("lost: the work has stopped, another may have the lock");
        } else if (release_ && event.is_of(*release_)) {
            (void)release_->try_finish(); // it throws if the hold was lost before
            leave(nullptr);
        } else if (event.kind == zklock::event_kind::disconnected) {
            std::cerr << "disconnected: the lock is held as long as its lease lasts\n";
        }
    }
    void end_work() {
        release_ = hold_->start_release();
        hold_.reset(); // the release goes on without it
    }
    void leave(const char *problem) {
        if (problem) std::cerr << problem << '\n', status_ = 1;
        ended_ = true;
    }

    zklock::client client_; // before all that is made of it
    asio::posix::stream_descriptor readable_;
    asio::steady_timer work_;
    zklock::async_call<zklock::hold> acquiring_;
    std::optional<zklock::hold> hold_;
    std::optional<zklock::async_call<void>> release_;
    bool ended_ = false;
    int status_ = 0;
};

int main() try {
    asio::io_context loop;
    worker worker(loop);
    loop.run();
    return worker.close();
} catch (const zklock::error &problem) {
    std::cerr << problem.what() << '\n';
    return 1;
}
