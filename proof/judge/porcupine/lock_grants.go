package main

import (
	"cmp"
	"slices"
)

// The moments between which each hold was granted, narrowed by its fence: after the holds with lower
// fences, and before those with higher ones. An exclusive hold comes after the others have ended, and
// the others after it has. The model demands the same, so this only shortens the search. Where
// nothing remains, the history is violated, and the moments are left as they are for the search to
// find that.
func narrowedGrants(holds []*hold) map[*hold]span {
	grants := map[*hold]span{}
	var fenced []*hold
	for _, each := range holds {
		if each.acquired.To == nil {
			continue
		}
		grants[each] = span{each.acquired.from(), each.acquired.to()}
		if each.acquired.Fence != nil {
			fenced = append(fenced, each)
		}
	}
	slices.SortStableFunc(fenced, func(a, b *hold) int { return cmp.Compare(*a.acquired.Fence, *b.acquired.Fence) })
	narrowed := make([]span, len(fenced))
	granted, ended, endedExclusive := moment(0), moment(0), moment(0)
	for index, each := range fenced {
		from := max(each.acquired.from(), granted, endedExclusive)
		if each.isExclusive() {
			from = max(from, ended)
		}
		narrowed[index].from = from
		// A moment later, also where all of them may have begun at once: then the search tries them in
		// their order.
		granted = from + 1
		ended = max(ended, each.endsFrom(), granted)
		if each.isExclusive() {
			endedExclusive = ended
		}
	}
	next := never
	for index, each := range slices.Backward(fenced) {
		next = min(next, each.acquired.to())
		narrowed[index].to = next
	}
	for index, each := range fenced {
		if narrowed[index].from <= narrowed[index].to {
			grants[each] = narrowed[index]
		}
	}
	return grants
}
