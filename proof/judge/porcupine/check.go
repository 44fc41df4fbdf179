package main

import (
	"encoding/json"
	"time"

	"github.com/anishathalye/porcupine"
)

// A part of the history of one object that can be judged alone.
type part struct {
	model      porcupine.Model
	operations []porcupine.Operation
	// The records of operations that belong together: without one of them, the others mean nothing.
	units [][]int
}

// The records of an operation are its metadata.
func operation(input any, records []*record, call, returned moment) porcupine.Operation {
	return porcupine.Operation{Input: input, Call: int64(call), Return: int64(returned), Metadata: records}
}

func check(object, name string, parts []part, timeout time.Duration) verdict {
	result := verdict{Object: object, Name: name, Verdict: linearizable, Parts: len(parts)}
	deadline := time.Now().Add(timeout)
	for _, each := range parts {
		result.Operations += len(each.operations)
		left := time.Until(deadline)
		outcome := porcupine.Unknown
		if left > 0 {
			outcome = porcupine.CheckOperationsTimeout(each.model, each.operations, left)
		}
		switch {
		case outcome == porcupine.Illegal:
			result.Verdict = violated
			result.Faults = append(result.Faults, fault{each.atFault(deadline)})
		case outcome == porcupine.Unknown && result.Verdict != violated:
			result.Verdict = undecided
		}
	}
	return result
}

// Leaves out what the violation does not need, one unit after the other.
func (p part) atFault(deadline time.Time) []json.RawMessage {
	kept := make([]bool, len(p.operations))
	for index := range kept {
		kept[index] = true
	}
	for _, unit := range p.units {
		setAll(kept, unit, false)
		left := time.Until(deadline)
		if left <= 0 || porcupine.CheckOperationsTimeout(p.model, p.chosen(kept), left) != porcupine.Illegal {
			setAll(kept, unit, true)
		}
	}
	records := []json.RawMessage{}
	seen := map[*record]bool{}
	for _, each := range p.chosen(kept) {
		for _, r := range each.Metadata.([]*record) {
			if !seen[r] {
				seen[r] = true
				records = append(records, r.raw)
			}
		}
	}
	return records
}

func (p part) chosen(kept []bool) []porcupine.Operation {
	var chosen []porcupine.Operation
	for index, each := range p.operations {
		if kept[index] {
			chosen = append(chosen, each)
		}
	}
	return chosen
}

func setAll(flags []bool, indices []int, value bool) {
	for _, index := range indices {
		flags[index] = value
	}
}
