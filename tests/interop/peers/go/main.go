// A peer with go-zookeeper's Lock: peer CONNECT KIND PATH SESSION_MS REGISTER NAME
package main

import (
	"bufio"
	"io"
	"log"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// line goes to the register: see ../../register.py.
type line struct {
	name    string
	socket  net.Conn
	answers *bufio.Reader
}

func (l *line) tell(word string, rest ...string) {
	text := strings.Join(append([]string{word, l.name}, rest...), " ")
	if _, err := io.WriteString(l.socket, text+"\n"); err != nil {
		log.Fatal(err)
	}
}

// ask sends a line, and returns whether to go on.
func (l *line) ask(word string, rest ...string) bool {
	l.tell(word, rest...)
	answer, err := l.answers.ReadString('\n')
	if err != nil {
		log.Fatal("the register has ended")
	}
	return answer == "go\n"
}

// node is the name of the lock's node, which the library hides.
func node(lock *zk.Lock) string {
	path := reflect.ValueOf(lock).Elem().FieldByName("lockPath").String()
	return path[strings.LastIndex(path, "/")+1:]
}

func main() {
	log.SetFlags(0)
	connect, kind, path, name := os.Args[1], os.Args[2], os.Args[3], os.Args[6]
	milliseconds, err := strconv.Atoi(os.Args[4])
	if err != nil || kind != "mutex" {
		log.Fatalf("not %s, or not %s", os.Args[4], kind)
	}
	socket, err := net.Dial("tcp", os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	register := &line{name, socket, bufio.NewReader(socket)}
	var losses atomic.Int64
	connected := func() *zk.Conn {
		client, _, err := zk.Connect(strings.Split(connect, ","), time.Duration(milliseconds)*time.Millisecond,
			zk.WithLogInfo(false), zk.WithEventCallback(func(event zk.Event) {
				if event.State == zk.StateDisconnected || event.State == zk.StateExpired {
					losses.Add(1)
				}
			}))
		if err != nil {
			log.Fatal(err)
		}
		for client.State() != zk.StateHasSession {
			time.Sleep(5 * time.Millisecond)
		}
		return client
	}
	client := connected()
	goesOn := register.ask("hello")
	for goesOn {
		lock := zk.NewLock(client, path, zk.WorldACL(zk.PermAll))
		err := lock.Lock()
		if err == nil {
			before := losses.Load()
			register.ask("enter", "x", node(lock), "0")
			if losses.Load() == before {
				goesOn = register.ask("leave")
			} else {
				goesOn = register.ask("lost", "connection")
			}
			err = lock.Unlock()
		}
		if err != nil {
			// The library leaves its node behind, but the end of the session deletes it.
			register.tell("note", err.Error())
			client.Close()
			client = connected()
		}
	}
	client.Close()
}
