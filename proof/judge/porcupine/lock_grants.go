package main

import (
	"cmp"
	"slices"
)

// The moments between which each hold was granted, narrowed by its fence: after the holds with lower
// fences can have ended, and before those with higher ones have begun. Readers say nothing of each
// other. The model demands the same, so this only shortens the search. Where nothing remains, the
// history is violated, and the moments are left as they are for the search to find that.
func narrowedGrants(holds []*hold) map[*hold]span {
	grants := map[*hold]span{}
	var fenced []*hold
	for _, each := range holds {
		if each.acquired.To == nil {
			continue
		}
		grants[each] = span{each.acquired.from(), each.acquired.to()}
		if each.acquired.Fence != nil && (each.isExclusive() || each.isReader()) {
			fenced = append(fenced, each)
		}
	}
	slices.SortStableFunc(fenced, func(a, b *hold) int { return cmp.Compare(*a.acquired.Fence, *b.acquired.Fence) })
	bounds := make([]span, len(fenced))
	// Of all holds, and of exclusive ones.
	ended, endedExclusive := moment(0), moment(0)
	forEqual(fenced, func(first, last int) {
		for index := first; index < last; index++ {
			bounds[index].from = chosen(fenced[index].isExclusive(), ended, endedExclusive)
		}
		for index, each := range fenced[first:last] {
			// A moment later than each of these, also where all of them may have begun at once: then the
			// search tries them in their order.
			over := max(each.endsFrom(), each.acquired.from()+1, bounds[first+index].from+1)
			ended = max(ended, over)
			if each.isExclusive() {
				endedExclusive = max(endedExclusive, over)
			}
		}
	})
	begun, begunExclusive := never, never
	forEqual(reversed(fenced), func(first, last int) {
		for index := first; index < last; index++ {
			each := len(fenced) - 1 - index
			bounds[each].to = chosen(fenced[each].isExclusive(), begun, begunExclusive)
		}
		for index := first; index < last; index++ {
			each := fenced[len(fenced)-1-index]
			begun = min(begun, each.acquired.to())
			if each.isExclusive() {
				begunExclusive = min(begunExclusive, each.acquired.to())
			}
		}
	})
	for index, each := range fenced {
		grant := grants[each]
		narrowed := span{max(grant.from, bounds[index].from), min(grant.to, bounds[index].to)}
		if narrowed.from <= narrowed.to {
			grants[each] = narrowed
		}
	}
	return grants
}

// Calls visit for each range of holds with the same fence.
func forEqual(holds []*hold, visit func(first, last int)) {
	for first := 0; first < len(holds); {
		last := first + 1
		for last < len(holds) && *holds[last].acquired.Fence == *holds[first].acquired.Fence {
			last++
		}
		visit(first, last)
		first = last
	}
}

func reversed(holds []*hold) []*hold {
	result := slices.Clone(holds)
	slices.Reverse(result)
	return result
}

func chosen(isFirst bool, first, second moment) moment {
	if isFirst {
		return first
	}
	return second
}
