package main

import (
	"slices"
	"sort"

	"github.com/anishathalye/porcupine"
)

// An operation on a lock. At a cut it is on the side that `key` says.
type lockEvent struct {
	input          lockInput
	records        []*record
	call, returned moment
	key            moment
}

type span struct{ from, to moment }

// Cuts the history of a lock at moments at which somebody holds it for certain. Every request that
// is under way at such a moment is granted after it, or may be: to grant it later never hurts. Every
// hold whose end is under way has ended before it, or may have. So each part can be judged alone.
//
// Acquisitions without an answer are left out. A lock that they did not take admits no less.
func lockParts(holds []*hold, healedAt, patience moment) []part {
	var events []lockEvent
	var uncut []span
	waits := waitEvents(holds, healedAt, patience)
	grants := narrowedGrants(holds)
	for _, each := range holds {
		if each.acquired.To == nil {
			continue
		}
		grant, endsFrom := grants[each], each.endsFrom()
		events = append(events,
			lockEvent{lockInput{take, each}, each.records(), grant.from, grant.to, grant.to},
			lockEvent{lockInput{giveBack, each}, each.records(), max(endsFrom, grant.from), each.endsBy(patience), max(endsFrom, grant.to)})
		// It may have come and gone before its holder heard of it: on which side is not known.
		if endsFrom < grant.to {
			uncut = append(uncut, span{max(endsFrom, grant.from), grant.to})
		}
		// A waiter's question whether the lock is busy must not lose a hold that may last.
		if len(waits) > 0 && !each.isExclusive() && (each.ended == nil || each.ended.To == nil) {
			uncut = append(uncut, span{endsFrom, each.endsBy(patience)})
		}
	}
	events = append(events, waits...)
	sort.SliceStable(events, func(i, j int) bool { return events[i].key < events[j].key })
	return cutLock(events, merged(uncut))
}

// A waiter that is alive and not served says that the lock was busy at some moment of each stretch of
// its wait that is as long as patience, back from the end of the wait to the last fault.
func waitEvents(holds []*hold, healedAt, patience moment) []lockEvent {
	var events []lockEvent
	for _, each := range holds {
		if each.acquired.To != nil || each.acquired.WaitedUntil == nil {
			continue
		}
		start := max(healedAt, each.acquired.from())
		for to := toMoment(*each.acquired.WaitedUntil); to-patience >= start; to -= patience {
			events = append(events, lockEvent{lockInput{beBusy, each}, each.records(), to - patience, to, to})
		}
	}
	return events
}

func cutLock(events []lockEvent, uncut []span) []part {
	var parts []part
	var carried lockState
	var top *hold
	start := moment(0)
	isFirst := true
	for begin := 0; begin < len(events); {
		end := begin
		cut := never
		for end < len(events) && cut == never {
			last := events[end]
			end++
			at := last.key + 1
			isSure := last.input.step == take && last.input.hold.endsFrom() > at
			isAlone := end == len(events) || events[end].key > at
			if end-begin >= partSize && isSure && isAlone && !isWithin(uncut, at) {
				cut = at
			}
		}
		built := partBuilder{start: start, cut: cut, isFirst: isFirst}
		built.carry(carried, top)
		for _, each := range events[begin:end] {
			built.add(each)
			carried, top = carriedOn(carried, top, each.input)
		}
		parts = append(parts, built.part())
		begin, start, isFirst = end, cut, false
	}
	return parts
}

// The holds that last after the event, and the one with the highest fence, whether it was allowed or
// not.
func carriedOn(state lockState, top *hold, input lockInput) (lockState, *hold) {
	switch input.step {
	case take:
		fence := input.hold.acquired.Fence
		if fence != nil && (top == nil || *fence > *top.acquired.Fence) {
			top = input.hold
		}
		return state.with(input.hold), top
	case giveBack:
		_, state = state.next(input)
	}
	return state, top
}

type partBuilder struct {
	start, cut moment
	isFirst    bool
	operations []porcupine.Operation
	units      map[*hold][]int
	order      []*hold
}

func (b *partBuilder) carry(state lockState, top *hold) {
	if top != nil {
		b.put(lockInput{carryFence, top}, top.records()[:1], b.start-1, b.start-1)
	}
	for _, each := range state.holders {
		b.put(lockInput{carryHold, each}, each.records(), b.start-1, b.start-1)
	}
}

func (b *partBuilder) add(event lockEvent) {
	call, returned := event.call, min(event.returned, b.cut)
	// At a cut the lock is busy, which is all that such a waiter says.
	if event.input.step == beBusy && !b.isFirst && call <= b.start {
		return
	}
	if !b.isFirst {
		call = max(call, b.start)
	}
	b.put(event.input, event.records, call, max(call, returned))
}

func (b *partBuilder) put(input lockInput, records []*record, call, returned moment) {
	if b.units == nil {
		b.units = map[*hold][]int{}
	}
	if b.units[input.hold] == nil {
		b.order = append(b.order, input.hold)
	}
	b.units[input.hold] = append(b.units[input.hold], len(b.operations))
	b.operations = append(b.operations, operation(input, records, call, returned))
}

func (b *partBuilder) part() part {
	built := part{model: lockModel, operations: b.operations}
	for _, each := range b.order {
		built.units = append(built.units, b.units[each])
	}
	return built
}

func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return int(min(1, max(-1, a.from-b.from))) })
	var result []span
	for _, each := range spans {
		if last := len(result) - 1; last >= 0 && each.from <= result[last].to {
			result[last].to = max(result[last].to, each.to)
		} else {
			result = append(result, each)
		}
	}
	return result
}

func isWithin(spans []span, at moment) bool {
	next := sort.Search(len(spans), func(i int) bool { return spans[i].to >= at })
	return next < len(spans) && spans[next].from < at
}
