// inline_chain SECONDS: small functions that Go inlines into each other, closures and interfaces.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"
)

func shift(value uint64) uint64 { return value ^ value>>33 }

func mix(value uint64) uint64 { return shift(value*0xff51afd7ed558ccd) ^ value>>29 }

type shelf struct{ boxes []uint64 }

func (s *shelf) add(box uint64) { s.boxes = append(s.boxes, mix(box)) }

func (s *shelf) weight() uint64 {
	sum := uint64(0)
	for _, box := range s.boxes {
		sum += mix(box)
	}
	return sum
}

type robot interface{ work(shelves []shelf) uint64 }

type sorter struct{}
type labeller struct{}

func (sorter) work(shelves []shelf) uint64 {
	most := uint64(0)
	for i := range shelves {
		boxes := shelves[i].boxes
		sort.Slice(boxes, func(a, b int) bool { return mix(boxes[a]) < mix(boxes[b]) })
		if weight := shelves[i].weight(); weight > most {
			most = weight
		}
		boxes[0], boxes[len(boxes)-1] = boxes[len(boxes)-1], boxes[0]
	}
	return most
}

func (labeller) work(shelves []shelf) uint64 {
	labels := map[string]uint64{}
	for i := range shelves {
		labels[strconv.FormatUint(shelves[i].weight()%97, 10)] += shelves[i].boxes[0]
	}
	return uint64(len(labels))
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	shelves := make([]shelf, 64)
	next := uint64(1)
	for i := range shelves {
		for j := 0; j < 200; j++ {
			next = mix(next + 1)
			shelves[i].add(next)
		}
	}
	robots := []robot{sorter{}, labeller{}}
	done := uint64(0)
	for start := time.Now(); time.Since(start).Seconds() < seconds; {
		for _, r := range robots {
			done += r.work(shelves)
		}
	}
	fmt.Println(done)
}
