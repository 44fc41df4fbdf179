package main

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// What a fenced register has: the last value that was written, and the highest fence seen.
type registerState struct {
	value   string
	isEmpty bool
	highest int64
}

type registerInput struct {
	fence      int64
	isWrite    bool
	value      *string
	isAccepted bool
	// It may take effect, or may not: no answer came, or none that says it.
	isUnknown bool
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{isEmpty: true} },
	Step: func(state, input, _ any) (bool, any) {
		return state.(registerState).next(input.(registerInput))
	},
}

// A guard accepts a fence exactly if it is not below the highest it has seen, and remembers it.
func (s registerState) next(call registerInput) (bool, registerState) {
	isStale := call.fence < s.highest
	switch {
	case isStale:
		return call.isUnknown || !call.isAccepted, s
	case call.isUnknown || call.isAccepted:
		isRight := call.isWrite || call.isUnknown || s.shows(call.value)
		return isRight, s.after(call)
	}
	return false, s
}

func (s registerState) shows(value *string) bool {
	if value == nil {
		return s.isEmpty
	}
	return !s.isEmpty && s.value == *value
}

func (s registerState) after(call registerInput) registerState {
	if call.isWrite {
		s.isEmpty, s.value = call.value == nil, deref(call.value)
	}
	s.highest = max(s.highest, call.fence)
	return s
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// A call to a register, and the moments between which it took effect.
type registerCall struct {
	input          registerInput
	record         *record
	call, returned moment
}

// Cuts the history of a register at moments at which no call is under way and its state is known: the
// highest fence, and the value that the last call with that fence has left.
func registerParts(records []*record) []part {
	calls := understood(records)
	narrow(calls)
	slices.SortStableFunc(calls, func(a, b *registerCall) int { return cmp.Compare(a.returned, b.returned) })
	// The earliest beginning of the calls that return later.
	begins := make([]moment, len(calls)+1)
	begins[len(calls)] = never
	for index := len(calls) - 1; index >= 0; index-- {
		begins[index] = min(begins[index+1], calls[index].call)
	}
	var parts []part
	var known, carried *registerCall
	isKnown := true
	begin := 0
	for index, each := range calls {
		known, isKnown = lastAccepted(known, isKnown, each)
		isEnd := index+1 == len(calls)
		if isEnd || (index+1-begin >= partSize && begins[index+1] > each.returned && isKnown && known != nil) {
			parts = append(parts, registerPart(carried, calls[begin:index+1]))
			begin, carried = index+1, known
		}
	}
	return parts
}

// The call that left the register as it is, and whether that is known.
func lastAccepted(last *registerCall, isKnown bool, next *registerCall) (*registerCall, bool) {
	switch {
	case !next.input.isUnknown && !next.input.isAccepted:
		return last, isKnown
	case last == nil || next.input.fence > last.input.fence:
		return next, !next.input.isUnknown
	case next.input.fence < last.input.fence:
		return last, isKnown
	}
	return next, isKnown && !next.input.isUnknown && next.call > last.returned
}

func registerPart(carried *registerCall, calls []*registerCall) part {
	built := part{model: registerModel}
	if carried != nil {
		// A write of what it has left: also a read tells that.
		input := carried.input
		input.isWrite = true
		start := calls[0].call
		for _, each := range calls {
			start = min(start, each.call)
		}
		built.operations = append(built.operations, operation(input, []*record{carried.record}, start-1, start-1))
	}
	for _, each := range calls {
		built.operations = append(built.operations, operation(each.input, []*record{each.record}, each.call, each.returned))
	}
	built.units = registerUnits(built.operations)
	return built
}

// Refused calls can be left out, then reads, then writes with the reads of what they wrote.
func registerUnits(operations []porcupine.Operation) [][]int {
	var refused, reads, writes [][]int
	readers := map[string][]int{}
	for index, each := range operations {
		input := each.Input.(registerInput)
		switch {
		case !input.isUnknown && !input.isAccepted:
			refused = append(refused, []int{index})
		case !input.isWrite:
			reads = append(reads, []int{index})
			readers[deref(input.value)] = append(readers[deref(input.value)], index)
		}
	}
	for index, each := range operations {
		if input := each.Input.(registerInput); input.isWrite && (input.isAccepted || input.isUnknown) {
			writes = append(writes, append([]int{index}, readers[deref(input.value)]...))
		}
	}
	return slices.Concat(refused, reads, writes)
}

// Says of each call what is known of it. A write without an answer was accepted if its value was read.
// Otherwise it can take effect only until a higher fence is accepted.
func understood(records []*record) []*registerCall {
	readAt := map[string]moment{}
	for _, each := range records {
		if each.Type == "read" && isTrue(each.IsAccepted) && each.Value != nil {
			if at, isThere := readAt[*each.Value]; !isThere || each.to() < at {
				readAt[*each.Value] = each.to()
			}
		}
	}
	var calls []*registerCall
	for _, each := range records {
		call := &registerCall{registerInput{
			fence:      *each.Fence,
			isWrite:    each.Type == "write",
			value:      each.Value,
			isAccepted: isTrue(each.IsAccepted),
		}, each, each.from(), each.to()}
		if each.IsAccepted == nil || each.To == nil {
			at, isRead := readAt[deref(each.Value)]
			call.input.isAccepted = call.input.isWrite && isRead && at >= call.call
			call.input.isUnknown = !call.input.isAccepted
			call.returned = never
			if call.input.isAccepted {
				call.returned = at
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// Narrows the moments of each call by the calls with other fences: an accepted one took effect before
// those with higher fences, and after those with lower ones. Where nothing remains, the history is
// violated, and the call is left as it is for the search to find that.
func narrow(calls []*registerCall) {
	slices.SortStableFunc(calls, func(a, b *registerCall) int { return cmp.Compare(a.input.fence, b.input.fence) })
	type bound struct{ call, returned moment }
	bounds := make([]bound, len(calls))
	lowest, highest := moment(0), never
	forFences(calls, func(first, last int) {
		for index := first; index < last; index++ {
			bounds[index].call = lowest
		}
		for _, each := range calls[first:last] {
			if each.input.isAccepted {
				lowest = max(lowest, each.call)
			}
		}
	})
	for last := len(calls); last > 0; {
		first := last - 1
		for first > 0 && calls[first-1].input.fence == calls[last-1].input.fence {
			first--
		}
		for index := first; index < last; index++ {
			bounds[index].returned = highest
		}
		for _, each := range calls[first:last] {
			if each.input.isAccepted {
				highest = min(highest, each.returned)
			}
		}
		last = first
	}
	for index, each := range calls {
		each.narrowTo(bounds[index].call, bounds[index].returned)
	}
}

func (c *registerCall) narrowTo(after, before moment) {
	switch {
	case c.input.isUnknown:
		// It is too late from then on, so this is as good as never.
		c.returned = max(c.call, min(c.returned, before))
	case c.input.isAccepted:
		call, returned := max(c.call, after), min(c.returned, before)
		if call <= returned {
			c.call, c.returned = call, returned
		}
	case before <= c.returned:
		// Refused, and a higher fence was accepted before the answer: it is right then.
		c.call = max(c.call, before)
		c.returned = c.call
	}
}

func forFences(calls []*registerCall, visit func(first, last int)) {
	for first := 0; first < len(calls); {
		last := first + 1
		for last < len(calls) && calls[last].input.fence == calls[first].input.fence {
			last++
		}
		visit(first, last)
		first = last
	}
}

func isTrue(flag *bool) bool { return flag != nil && *flag }
