// go_switches SECONDS: what the runtime does on the stack of a thread, for a goroutine: C that goCaller calls, and garbage
// collection that goAllocator helps with.
package main

/*
#include <stdint.h>

static uint64_t c_spin(uint64_t state) {
  for (int i = 0; i < 20000000; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
  return state;
}

__attribute__((noinline)) uint64_t c_work(uint64_t state) { return c_spin(state) + 1; }
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

type node struct {
	left, right *node
	payload     [8]uint64
}

//go:noinline
func goAllocator(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: goAllocator(depth - 1), right: goAllocator(depth - 1)}
}

//go:noinline
func goCaller(state uint64) uint64 {
	return uint64(C.c_work(C.uint64_t(state))) + 1
}

var kept [4]*node

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	state := uint64(1)
	for turn := 0; time.Now().Before(end); turn++ {
		state = goCaller(state)
		kept[turn%len(kept)] = goAllocator(12)
	}
}
