// Command report lets goroutines share a lock.
//
//	report HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]
package main

// #cgo LDFLAGS: -lzklock
// #include <zklock.h>
import "C"
import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// check needs runtime.LockOSThread: zklock_last_error is about the calls of its own thread. A library would also keep the status.
func check(status C.zklock_status) error {
	if status == C.ZKLOCK_OK {
		return nil
	}
	return errors.New(C.GoString(C.zklock_last_error()))
}

// WithLock holds a lock during the work. The end of ctx ends the wait and the work; a loss ends the work.
func WithLock(ctx context.Context, lock *C.zklock_lock, timeout time.Duration, work func(context.Context, *C.zklock_hold)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	call, hold := new(*C.zklock_call), new(*C.zklock_hold)
	C.zklock_acquire_start(lock, C.int64_t(timeout.Milliseconds()), call) // call_hold gives its failures
	defer C.zklock_call_free(*call)
	defer context.AfterFunc(ctx, func() { C.zklock_call_cancel(*call) })()
	C.zklock_call_finish(*call, C.ZKLOCK_FOREVER, nil)
	if err := check(C.zklock_call_hold(*call, hold)); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer C.zklock_hold_free(*hold) // releases it if the work panics
	held, lost := context.WithCancel(ctx)
	go func() { C.zklock_hold_wait_lost(*hold, C.ZKLOCK_FOREVER, nil); lost() }() // a release ends it, too
	work(held, *hold)
	return cmp.Or(check(C.zklock_release(*hold)), context.Cause(ctx))
}

var client = new(*C.zklock_client)

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		C.zklock_client_close(*client) // ends all other waits, and leaves no node behind
		os.Exit(1)
	}
}

func main() {
	runtime.LockOSThread() // for check
	seconds, _ := time.ParseDuration(os.Args[3] + "s")
	workers, _ := strconv.Atoi(os.Args[4])

	// Like the client and all C strings, these live to the end.
	options, lock, results := new(*C.zklock_options), new(*C.zklock_lock), make(chan error)
	must(check(C.zklock_options_new(options)))
	for _, setting := range os.Args[5:] {
		name, value, _ := strings.Cut(setting, "=")
		must(check(C.zklock_options_set(*options, C.CString(name), C.CString(value))))
	}
	must(check(C.zklock_client_new(C.CString(os.Args[1]), *options, client)))
	must(check(C.zklock_mutex_new(*client, C.CString(os.Args[2]), nil, lock)))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := func(held context.Context, hold *C.zklock_hold) {
		fmt.Printf("acquired: token %d, valid for %d ms\n", C.zklock_hold_token(hold), C.zklock_hold_valid_for(hold))
		working, end := context.WithTimeout(held, seconds)
		defer end()
		<-working.Done()
	}
	for range workers {
		go func() { results <- WithLock(ctx, *lock, 3*time.Second, report) }()
	}
	for range workers {
		must(<-results)
		fmt.Println("released")
	}
	must(check(C.zklock_client_close(*client)))
}
