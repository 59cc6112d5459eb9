// The benchmarks as goroutines and channels. Usage: go BENCHMARK SIZE [WORKERS [NUMBER]]; prints one
// line of JSON. The number is a channel's capacity, or how many channels there are to select from. If
// nothing is said, a channel is unbuffered where a sender waits for its turn anyway, and holds 64
// messages where a sender runs ahead.
package main

import (
	"fmt"
	"os"
	"reflect"
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

// ring passes a falling number round each of the rings; whoever gets the 0 reports its place.
func ring(n, size, rings, capacity int) {
	done := make(chan int)
	starts := make([]chan int, rings)
	for r := range starts {
		players := make([]chan int, size)
		for i := range players {
			players[i] = make(chan int, capacity)
		}
		for i := range players {
			go func(place int, own, next chan int) {
				for left := range own {
					if left == 0 {
						done <- place
					} else {
						next <- left - 1
					}
				}
			}(i+1, players[i], players[(i+1)%size])
		}
		starts[r] = players[0]
	}
	timed(n*rings, rings*(n%size+1), rings, done, func() {
		for _, start := range starts {
			start <- n
		}
	})
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
func pipeline(n, stages, capacity int) {
	done := make(chan int)
	first := make(chan int, capacity)
	last := first
	for i := 0; i < stages; i++ {
		next := make(chan int, capacity)
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
	operations := n
	if stages > 1 {
		operations *= stages
	}
	timed(operations, n, 1, done, func() {
		for i := 0; i < n; i++ {
			first <- i
		}
	})
}

// fanIn has producers share a channel to one consumer, which adds up what they send.
func fanIn(n, producers, capacity int) {
	done := make(chan int)
	shared := make(chan int, capacity)
	n -= n % producers
	timed(n, n*(n-1)/2, 1, done, func() {
		for p := 0; p < producers; p++ {
			go func(first int) {
				for i := first; i < n; i += producers {
					shared <- i
				}
			}(p)
		}
		go func() {
			total := 0
			for i := 0; i < n; i++ {
				total += <-shared
			}
			done <- total
		}()
	})
}

// selecting has a goroutine wait for any of the channels, one of which gets a value in each round.
func selecting(n int, channels []chan int, choose func() int) {
	done := make(chan int)
	arrived := make(chan int, 1)
	places := make([]int, n)
	state := 2
	for i := range places {
		state = (state*1103515245 + 12345) & 0x7fffffff
		places[i] = (state >> 8) % len(channels)
	}
	timed(n, n, 1, done, func() {
		go func() {
			for _, place := range places {
				channels[place] <- place
				<-arrived
			}
		}()
		go func() {
			right := 0
			for _, place := range places {
				if choose() == place {
					right++
				}
				arrived <- place
			}
			done <- right
		}()
	})
}

func channels(count int) []chan int {
	made := make([]chan int, count)
	for i := range made {
		made[i] = make(chan int, 1)
	}
	return made
}

// selectAny selects from any number of channels.
func selectAny(n, count int) {
	c := channels(count)
	cases := make([]reflect.SelectCase, count)
	for i := range cases {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c[i])}
	}
	selecting(n, c, func() int {
		_, value, _ := reflect.Select(cases)
		return int(value.Int())
	})
}

// selectTen selects from as many as the statement names.
func selectTen(n int) {
	c := channels(10)
	selecting(n, c, func() int {
		select {
		case value := <-c[0]:
			return value
		case value := <-c[1]:
			return value
		case value := <-c[2]:
			return value
		case value := <-c[3]:
			return value
		case value := <-c[4]:
			return value
		case value := <-c[5]:
			return value
		case value := <-c[6]:
			return value
		case value := <-c[7]:
			return value
		case value := <-c[8]:
			return value
		case value := <-c[9]:
			return value
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

type order struct{ kind, who, amount int32 }

const (
	accounts = 1000
	transfer = 0
	take     = 1
	paid     = 2
)

// account pays one transfer at a time, and keeps what it is told meanwhile for later.
func account(number int, inboxes []chan order, teller chan bool, done chan int) {
	balance, paying := 0, false
	var later []order
	pay := func(o order) {
		paying = true
		balance -= int(o.amount)
		inboxes[o.who] <- order{take, int32(number), o.amount}
	}
	for o := range inboxes[number] {
		switch o.kind {
		case transfer:
			if paying {
				later = append(later, o)
			} else {
				pay(o)
			}
		case take:
			balance += int(o.amount)
			inboxes[o.who] <- order{kind: paid}
		case paid:
			paying = false
			teller <- true
			if len(later) > 0 {
				first := later[0]
				later = later[1:]
				pay(first)
			}
		}
	}
	done <- balance * number
}

// banking has n transfers made, a thousand at a time. Each has one message on its way, so an inbox
// with room for a thousand is never full.
func banking(n int) {
	done := make(chan int)
	teller := make(chan bool, accounts)
	inboxes := make([]chan order, accounts)
	for i := range inboxes {
		inboxes[i] = make(chan order, accounts)
	}
	payers, orders := make([]int, n), make([]order, n)
	want, state := 0, 2
	for i := range orders {
		state = (state*1103515245 + 12345) & 0x7fffffff
		payer, step := (state>>8)%accounts, (state>>8)/accounts
		payee, amount := (payer+1+step%(accounts-1))%accounts, 1+state%99
		payers[i], orders[i] = payer, order{transfer, int32(payee), int32(amount)}
		want += amount * (payee - payer)
	}
	for i := range inboxes {
		go account(i, inboxes, teller, done)
	}
	timed(4*n, want, accounts, done, func() {
		ordered := 0
		more := func() {
			if ordered < n {
				inboxes[payers[ordered]] <- orders[ordered]
				ordered++
			}
		}
		for i := 0; i < accounts; i++ {
			more()
		}
		for i := 0; i < n; i++ {
			<-teller
			more()
		}
		for _, inbox := range inboxes {
			close(inbox)
		}
	})
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
	number := func(unsaid int) int {
		if len(os.Args) > 4 {
			unsaid, _ = strconv.Atoi(os.Args[4])
		}
		return unsaid
	}
	runtime.GOMAXPROCS(workers)
	switch os.Args[1] {
	case "ping_pong":
		ring(n, 2, 1, number(0))
	case "thread_ring":
		ring(n, 100, 1, 0)
	case "pairs":
		ring(n, 2, 8, 0)
	case "rings":
		ring(n, 100, 8, 0)
	case "counting":
		fanOut(n, 1)
	case "fork_join_throughput":
		fanOut(n, 60)
	case "fork_join_create":
		create(n)
	case "banking":
		banking(n)
	case "one_to_one":
		pipeline(n, 0, number(ahead))
	case "pipeline_10":
		pipeline(n, 10, ahead)
	case "pipeline_100":
		pipeline(n, 100, number(ahead))
	case "native_pipeline":
		pipeline(n, 1000, ahead)
	case "fan_in":
		fanIn(n, 16, number(ahead))
	case "select":
		selectAny(n, number(10))
	case "select_10":
		selectTen(n)
	case "big":
		big(n, 120)
	default:
		fmt.Fprintln(os.Stderr, "no benchmark", os.Args[1])
		os.Exit(2)
	}
}
