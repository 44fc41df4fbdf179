package main

import (
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// A part has at least so many operations, if there are so many. The search among readers, or among
// holders of a semaphore, grows very fast with the length of a part.
const partSize = 12

type lockStep int

const (
	// The lock is taken.
	take lockStep = iota
	// It is given back, or its lease has ended.
	giveBack
	// A part begins with the holds that last, and with the highest fence so far.
	carryHold
	carryFence
	// A waiter was not served: somebody must hold the lock.
	beBusy
)

type lockInput struct {
	step lockStep
	hold *hold
}

// Who holds a lock, and the highest fence that it has given.
type lockState struct {
	holders []*hold
	top     int64
}

func (h *hold) isExclusive() bool { return h.acquired.Kind == "mutex" || h.acquired.Kind == "write" }
func (h *hold) isReader() bool    { return h.acquired.Kind == "read" }

func (h *hold) permits() int {
	if h.acquired.Permits == nil {
		return 1
	}
	return *h.acquired.Permits
}

// The earliest moment at which it can have ended.
func (h *hold) endsFrom() moment {
	if h.ended == nil {
		return h.acquired.to()
	}
	return max(h.acquired.from(), h.ended.from())
}

// The latest moment at which it can have ended. A lease that nobody renews is over within patience.
func (h *hold) endsBy(patience moment) moment {
	if h.ended == nil || h.ended.To == nil {
		return max(h.endsFrom(), h.acquired.to()) + patience
	}
	return h.ended.to()
}

func (h *hold) records() []*record {
	if h.ended == nil {
		return []*record{h.acquired}
	}
	return []*record{h.acquired, h.ended}
}

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		return state.(lockState).next(input.(lockInput))
	},
	Equal: func(one, other any) bool {
		a, b := one.(lockState), other.(lockState)
		return a.top == b.top && slices.Equal(a.holders, b.holders)
	},
}

func (s lockState) next(input lockInput) (bool, lockState) {
	switch input.step {
	case take:
		if !s.admits(input.hold) {
			return false, s
		}
		return true, s.with(input.hold).raised(input.hold)
	case giveBack:
		at := slices.Index(s.holders, input.hold)
		if at < 0 {
			return false, s
		}
		s.holders = slices.Delete(slices.Clone(s.holders), at, at+1)
		return true, s
	case carryHold:
		return true, s.with(input.hold).raised(input.hold)
	case carryFence:
		return true, s.raised(input.hold)
	}
	return len(s.holders) > 0, s
}

// The rule of the lock, and of fences: a hold has a higher one than all holds before it.
func (s lockState) admits(asking *hold) bool {
	if fence := asking.acquired.Fence; fence == nil || *fence <= s.top {
		return false
	}
	switch {
	case asking.isExclusive():
		return len(s.holders) == 0
	case asking.isReader():
		return !slices.ContainsFunc(s.holders, (*hold).isExclusive)
	}
	used := asking.permits()
	for _, each := range s.holders {
		used += each.permits()
	}
	return asking.acquired.Capacity == nil || used <= *asking.acquired.Capacity
}

// In the order of the records, so that equal states look equal.
func (s lockState) with(added *hold) lockState {
	s.holders = append(slices.Clone(s.holders), added)
	sort.Slice(s.holders, func(i, j int) bool {
		return s.holders[i].acquired.Hold < s.holders[j].acquired.Hold
	})
	return s
}

func (s lockState) raised(by *hold) lockState {
	if fence := by.acquired.Fence; fence != nil {
		s.top = max(s.top, *fence)
	}
	return s
}
