// A worker with etcd's own lock (see ../../README.md): the Mutex of its client's package concurrency, which etcdctl lock uses.
// With --listens it claims nothing once Session.Done() is closed, the only report of the library to a holder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sys/unix"
)

const (
	patience = 10 * time.Second
	// How long a new session may take.
	dialled = 5 * time.Second
	// At the end: how long a turn may go on by itself, and how long its client may take to close.
	grace     = time.Second
	lastGrace = 5 * time.Second
)

type worker struct {
	hosts   []string
	ttl     int
	listens bool
	// How long a lock is held at most, and now and then, and how often that is said.
	usual, rare, step time.Duration
	locks             []string
	chance            *rand.Rand
	register          net.Conn
	turn              int
	client            *clientv3.Client
	session           *concurrency.Session
	// Done when the register has closed, and a little later.
	over, ended context.Context
}

// now is the clock that all processes of a machine share.
func now() int64 {
	var read unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &read); err != nil {
		log.Fatal(err)
	}
	return read.Nano()
}

func (w *worker) tell(words ...any) {
	if _, err := fmt.Fprintln(w.register, words...); err != nil {
		// There is no register any more.
		w.drop()
		os.Exit(0)
	}
}

func (w *worker) say(word string, rest ...any) {
	w.tell(append([]any{word, w.turn}, rest...)...)
}

// rest waits for a time. It returns false if the end came before.
func (w *worker) rest(long time.Duration) bool {
	select {
	case <-w.over.Done():
		return false
	case <-time.After(long):
		return true
	}
}

// connected returns whether there is a session that, according to the library, is not over.
func (w *worker) connected() bool {
	if w.session != nil && isDone(w.session) {
		w.drop()
	}
	if w.session != nil {
		return true
	}
	var err error
	if w.client == nil {
		// The times of etcdctl, for connections that say nothing.
		w.client, err = clientv3.New(clientv3.Config{Endpoints: w.hosts, DialTimeout: 2 * time.Second,
			DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 6 * time.Second, Context: w.ended})
	}
	if err == nil {
		// The session ends with this context, so it has no deadline. A timer ends it if the session is not there in time.
		lives, end := context.WithCancel(w.ended)
		late := time.AfterFunc(dialled, end)
		w.session, err = concurrency.NewSession(w.client, concurrency.WithTTL(w.ttl), concurrency.WithContext(lives))
		if err == nil && !late.Stop() {
			w.session, err = nil, errors.New("a session that came too late")
		}
		if err != nil {
			end()
		}
	}
	if err != nil {
		log.Print("no session: ", err)
		w.drop()
		w.rest(100 * time.Millisecond)
	}
	return w.session != nil
}

// drop ends the session, and with it any keys that may be left behind.
func (w *worker) drop() {
	session, client := w.session, w.client
	w.session, w.client = nil, nil
	if session != nil {
		if err := session.Close(); err != nil {
			log.Print("no end of a session: ", err)
		}
	}
	if client != nil {
		client.Close()
	}
}

func isDone(session *concurrency.Session) bool {
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}

// holds returns whether the lock is held, as far as the library knows without asking the servers.
func (w *worker) holds() bool { return !w.listens || !isDone(w.session) }

func (w *worker) takeTurn() {
	w.turn++
	lock := w.locks[w.chance.Intn(len(w.locks))]
	mutex := concurrency.NewMutex(w.session, strings.TrimPrefix(lock, "mutex:"))
	tries := w.chance.Intn(5) == 0
	w.say("want", lock, now())
	within, cancel := context.WithTimeout(w.ended, patience)
	take := mutex.Lock
	if tries {
		take = mutex.TryLock
	}
	err := take(within)
	cancel()
	why := ""
	switch {
	case errors.Is(err, concurrency.ErrLocked):
		why = "busy"
	case errors.Is(err, context.DeadlineExceeded):
		why = "timeout"
	case err != nil:
		log.Print("no lock: ", err)
		why = "error"
	case !w.holds():
		why = "done"
	}
	at := now()
	if why != "" {
		w.say("gave", at, why)
		// The attempt may have left its key behind.
		if why != "busy" {
			w.drop()
		}
		if why == "error" {
			w.rest(100 * time.Millisecond)
		}
		return
	}
	// The comparison in an etcd transaction that shows whether this one still holds the lock.
	owner := mutex.IsOwner()
	w.say("have", owner.GetCompare().GetCreateRevision(), mutex.Key(), at)
	w.hold()
	within, cancel = context.WithTimeout(w.ended, patience)
	defer cancel()
	if err := mutex.Unlock(within); err != nil {
		log.Print("no release: ", err)
		w.drop()
	}
	w.say("free", now())
}

func (w *worker) hold() {
	longest := w.usual
	if w.chance.Intn(10) == 0 {
		longest = w.rare
	}
	end := time.Now().Add(time.Duration(w.chance.Int63n(int64(longest) + 1)))
	for word := "still"; ; {
		// The hold is checked after the time was read, so that the claim is not longer than the hold.
		at := now()
		if !w.holds() {
			w.say("lost", now(), "done")
			return
		}
		w.say(word, at)
		if word == "done" {
			return
		}
		if left := time.Until(end); left <= 0 || !w.rest(min(left, w.step)) {
			word = "done"
		}
	}
}

func main() {
	words := os.Args[1:]
	listens := len(words) > 0 && words[len(words)-1] == "--listens"
	if listens {
		words = words[:len(words)-1]
	}
	milliseconds, err := strconv.Atoi(words[1])
	if err != nil {
		log.Fatal(err)
	}
	seed, err := strconv.ParseUint(words[4], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	var usual, rare, step int
	if _, err := fmt.Sscanf(words[5], "%d,%d,%d", &usual, &rare, &step); err != nil {
		log.Fatal(err)
	}
	register, err := net.Dial("tcp", words[2])
	if err != nil {
		log.Fatal(err)
	}
	w := &worker{hosts: strings.Split(words[0], ","), ttl: milliseconds / 1000, listens: listens, locks: words[6:],
		usual: time.Duration(usual) * time.Microsecond, rare: time.Duration(rare) * time.Microsecond,
		step: time.Duration(step) * time.Microsecond, chance: rand.New(rand.NewSource(int64(seed))), register: register}
	over, isOver := context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	w.over, w.ended = over, ended
	go func() {
		// The register never sends anything: whatever comes, or an error, is the end.
		io.Copy(io.Discard, register)
		isOver()
		time.Sleep(grace)
		// A wait in the client does not notice the end of the register.
		end()
		time.Sleep(lastGrace)
		os.Exit(0)
	}()
	w.tell("hello", words[3], os.Getpid())
	for over.Err() == nil {
		if !w.connected() {
			continue
		}
		w.takeTurn()
		if w.chance.Intn(3) == 0 {
			w.rest(time.Duration(w.chance.Intn(21)) * time.Millisecond)
		}
	}
	w.drop()
}
