// go_shares SECONDS: two goroutines on locked threads; each spends 3/4 of its CPU time at the end of a recursion and 1/4 in
// a plain function. Locked threads, so that the thread's CPU clock is the goroutine's.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const threadCPUClock = 3

func threadCPU() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUClock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

var sink uint64

func spin() uint64 {
	state := uint64(1)
	for i := 0; i < 8000; i++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func goHot(deadline int64) {
	for threadCPU() < deadline {
		sink += spin()
	}
}

//go:noinline
func goCold(deadline int64) {
	for threadCPU() < deadline {
		sink += spin()
	}
}

//go:noinline
func goRecurse(depth int, deadline int64) int {
	if depth == 0 {
		goHot(deadline)
		return 1
	}
	return goRecurse(depth-1, deadline) + 1
}

func spend(total int64) {
	start := threadCPU()
	for done := int64(0); done < total; done += 40_000_000 {
		goRecurse(20, start+done+30_000_000)
		goCold(start + done + 40_000_000)
	}
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	var group sync.WaitGroup
	for i := 0; i < 2; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			runtime.LockOSThread()
			spend(int64(seconds * 1e9))
		}()
	}
	group.Wait()
}
