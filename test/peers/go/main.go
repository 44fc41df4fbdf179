// Locks of redsync and bsm/redislock, driven over standard input: see test/peers/peer.ts for the lines. `peer PORT`.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const poll = 20 * time.Millisecond

var ctx = context.Background()

// A lock that is held, and how to give it back.
type release func() error

type taker func(name string, lease time.Duration) (release, error)

func takers(client *redis.Client) map[string]taker {
	sync := redsync.New(goredis.NewPool(client))
	locker := redislock.New(client)
	return map[string]taker{
		"redsync": func(name string, lease time.Duration) (release, error) {
			mutex := sync.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(10000), redsync.WithRetryDelay(poll))
			return func() error { _, err := mutex.Unlock(); return err }, mutex.Lock()
		},
		"redislock": func(name string, lease time.Duration) (release, error) {
			lock, err := locker.Obtain(ctx, name, lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(poll)})
			return func() error { return lock.Release(ctx) }, err
		},
	}
}

// What one task of the program does, one line after the other.
type task struct {
	takers map[string]taker
	held   map[string]release
}

func (t *task) run(command string, args []string) (string, error) {
	switch command {
	case "lock":
		give, err := t.takers[args[0]](args[1], millis(args[2]))
		t.held[args[1]] = give
		return "held", err
	case "unlock":
		return "released", t.held[args[1]]()
	case "count":
		return "counted", t.count(args)
	}
	return "", fmt.Errorf("no command %s", command)
}

func (t *task) count(args []string) error {
	turns, _ := strconv.Atoi(args[4])
	for i := 0; i < turns; i++ {
		give, err := t.takers[args[0]](args[1], millis(args[2]))
		if err != nil {
			return err
		}
		if err := bump(args[3]); err != nil {
			return err
		}
		if err := give(); err != nil {
			return err
		}
	}
	return nil
}

func bump(folder string) error {
	left, right := filepath.Join(folder, "left"), filepath.Join(folder, "right")
	first, _ := os.ReadFile(left)
	second, _ := os.ReadFile(right)
	if string(first) != string(second) {
		return fmt.Errorf("seen half written: %s and %s", first, second)
	}
	value, err := strconv.Atoi(string(first))
	if err != nil {
		return err
	}
	next := []byte(strconv.Itoa(value + 1))
	if err := os.WriteFile(left, next, 0o644); err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return os.WriteFile(right, next, 0o644)
}

func millis(text string) time.Duration {
	ms, _ := strconv.Atoi(text)
	return time.Duration(ms) * time.Millisecond
}

func (t *task) work(lines chan []string) {
	for words := range lines {
		answer, err := t.run(words[1], words[2:])
		if err != nil {
			fmt.Printf("%s error %v\n", words[0], err)
		} else {
			fmt.Printf("%s ok %s\n", words[0], answer)
		}
	}
}

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	all := takers(client)
	tasks := map[string]chan []string{}
	fmt.Println("0 ok ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		words := strings.Fields(input.Text())
		name := words[1]
		if tasks[name] == nil {
			tasks[name] = make(chan []string, 100)
			go (&task{all, map[string]release{}}).work(tasks[name])
		}
		tasks[name] <- append([]string{words[0]}, words[2:]...)
	}
}
