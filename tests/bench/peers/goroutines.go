// The benchmarks as goroutines and channels. Usage: go BENCHMARK SIZE [WORKERS]; prints one line
// of JSON. A channel is unbuffered where a sender waits for its turn anyway, and holds 64 messages
// where a sender runs ahead.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const ahead = 64

// timed runs begin and waits for the sum of as many numbers as there are answers.
func timed(operations, want, answers int, done chan int, begin func()) {
	start := time.Now()
	begin()
	got := 0
	for i := 0; i < answers; i++ {
		got += <-done
	}
	seconds := time.Since(start).Seconds()
	fmt.Printf("{\"operations\": %d, \"seconds\": %.9f, \"got\": %d, \"want\": %d}\n",
		operations, seconds, got, want)
}

// ring passes a falling number round; whoever gets the 0 reports 1.
func ring(n, size int) {
	done := make(chan int)
	players := make([]chan int, size)
	for i := range players {
		players[i] = make(chan int)
	}
	for i := range players {
		go func(own, next chan int) {
			for left := range own {
				if left == 0 {
					done <- 1
				} else {
					next <- left - 1
				}
			}
		}(players[i], players[(i+1)%size])
	}
	timed(n, 1, 1, done, func() { players[0] <- n })
}

// fanOut sends the numbers below n to the counters in turn and sums what they counted.
func fanOut(n, count int) {
	done := make(chan int)
	counters := make([]chan int, count)
	for i := range counters {
		counters[i] = make(chan int, ahead)
		go func(own chan int) {
			total := 0
			for value := range own {
				total += value
			}
			done <- total
		}(counters[i])
	}
	timed(n, n*(n-1)/2, count, done, func() {
		at := 0
		for i := 0; i < n; i++ {
			counters[at] <- i
			if at++; at == count {
				at = 0
			}
		}
		for _, each := range counters {
			close(each)
		}
	})
}

// create starts a goroutine a message; each counts its one message and is gone.
func create(n int) {
	done := make(chan int, 1)
	timed(n, n*(n-1)/2, 1, done, func() {
		var total int64
		var open sync.WaitGroup
		open.Add(n)
		for i := 0; i < n; i++ {
			inbox := make(chan int, 1)
			go func() {
				atomic.AddInt64(&total, int64(<-inbox))
				open.Done()
			}()
			inbox <- i
		}
		open.Wait()
		done <- int(total)
	})
}

// pipeline passes n items through stages that each add 1, and counts those that arrive in order.
func pipeline(n, stages int) {
	done := make(chan int)
	first := make(chan int, ahead)
	last := first
	for i := 0; i < stages; i++ {
		next := make(chan int, ahead)
		go func(from, to chan int) {
			for value := range from {
				to <- value + 1
			}
		}(last, next)
		last = next
	}
	go func() {
		inOrder := 0
		for i := 0; i < n; i++ {
			if <-last == i+stages {
				inOrder++
			}
		}
		done <- inOrder
	}()
	timed(n*stages, n, 1, done, func() {
		for i := 0; i < n; i++ {
			first <- i
		}
	})
}

// big lets count goroutines ping random others, one ping at a time; a ping carries its sender's
// number, and a pong is -1. An inbox has room for a ping from each other and a pong.
func big(n, count int) {
	done := make(chan int)
	var served int64
	inboxes := make([]chan int, count)
	for i := range inboxes {
		inboxes[i] = make(chan int, count)
	}
	for i := range inboxes {
		go func(number int) {
			state, sent := number, 0
			for from := range inboxes[number] {
				if from >= 0 {
					atomic.AddInt64(&served, 1)
					inboxes[from] <- -1
				} else if sent++; sent <= n {
					state = (state*1103515245 + 12345) & 0x7fffffff
					inboxes[(number+1+(state>>8)%(count-1))%count] <- number
				} else {
					done <- n
				}
			}
		}(i)
	}
	timed(2*n*count, n*count, count, done, func() {
		for _, inbox := range inboxes {
			inbox <- -1
		}
	})
	if served != int64(n*count) {
		fmt.Fprintf(os.Stderr, "%d pings were served, not %d\n", served, n*count)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go BENCHMARK SIZE [WORKERS]")
		os.Exit(2)
	}
	n, _ := strconv.Atoi(os.Args[2])
	workers := 1
	if len(os.Args) > 3 {
		workers, _ = strconv.Atoi(os.Args[3])
	}
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "ping_pong":
		ring(n, 2)
	case "thread_ring":
		ring(n, 100)
	case "counting":
		fanOut(n, 1)
	case "fork_join_throughput":
		fanOut(n, 60)
	case "fork_join_create":
		create(n)
	case "native_pipeline":
		pipeline(n, 1000)
	case "big":
		big(n, 120)
	default:
		fmt.Fprintln(os.Stderr, "no benchmark", os.Args[1])
		os.Exit(2)
	}
}
