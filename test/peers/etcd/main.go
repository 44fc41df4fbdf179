// A peer of Holdfast: etcd's own client for Go and its concurrency.Mutex.
//
//	etcd-peer bench ADDRESS              reads lines "SESSIONS LOCKS TASKS MS", answers the pairs of each task
//	etcd-peer count ADDRESS NAME FILE N  counts in a file, each time under the lock
//	etcd-peer hold ADDRESS NAME TTL      says "held", and holds until its input ends
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	args := os.Args[1:]
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(args[1], ","),
		DialTimeout: 5 * time.Second,
	})
	must(err)
	switch args[0] {
	case "bench":
		bench(args[1])
	case "count":
		count(client, args[2], args[3], number(args[4]))
	case "hold":
		hold(client, args[2], number(args[3]))
	}
}

func count(client *clientv3.Client, name string, file string, turns int) {
	session := newSession(client, 10)
	mutex := concurrency.NewMutex(session, name)
	for turn := 0; turn < turns; turn++ {
		must(mutex.Lock(context.Background()))
		text, err := os.ReadFile(file)
		must(err)
		must(os.WriteFile(file, []byte(strconv.Itoa(number(strings.TrimSpace(string(text)))+1)), 0o644))
		must(mutex.Unlock(context.Background()))
	}
	must(session.Close())
}

func hold(client *clientv3.Client, name string, ttl int) {
	session := newSession(client, ttl)
	mutex := concurrency.NewMutex(session, name)
	must(mutex.Lock(context.Background()))
	fmt.Println("held")
	_, _ = io.ReadAll(os.Stdin)
	must(mutex.Unlock(context.Background()))
	must(session.Close())
}

func bench(address string) {
	sessions := []*concurrency.Session{}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var count, locks, tasks, ms int
		_, err := fmt.Sscan(input.Text(), &count, &locks, &tasks, &ms)
		must(err)
		for len(sessions) < count {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
			must(err)
			sessions = append(sessions, newSession(client, 10))
		}
		counts := make([]string, tasks)
		end := time.Now().Add(time.Duration(ms) * time.Millisecond)
		var group sync.WaitGroup
		for task := 0; task < tasks; task++ {
			group.Add(1)
			go func(task int) {
				defer group.Done()
				pairs := 0
				name := fmt.Sprintf("go/lock-%d", task%locks)
				for ; time.Now().Before(end); pairs++ {
					mutex := concurrency.NewMutex(sessions[task%count], name)
					must(mutex.Lock(context.Background()))
					must(mutex.Unlock(context.Background()))
				}
				counts[task] = strconv.Itoa(pairs)
			}(task)
		}
		group.Wait()
		fmt.Println(strings.Join(counts, " "))
	}
}

func newSession(client *clientv3.Client, ttl int) *concurrency.Session {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	must(err)
	return session
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
