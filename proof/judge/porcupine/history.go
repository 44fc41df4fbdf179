package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// Picoseconds since the first record: its microseconds, with room for a million moments between two of
// them. Since the machine was started, they would be too many after three months.
type moment int64

const never moment = math.MaxInt64

// One line of the file. Which fields it has depends on its type.
type record struct {
	Type        string   `json:"type"`
	Lock        string   `json:"lock"`
	Kind        string   `json:"kind"`
	Permits     *int     `json:"permits"`
	Capacity    *int     `json:"capacity"`
	Hold        string   `json:"hold"`
	Register    string   `json:"register"`
	Fence       *int64   `json:"fence"`
	Value       *string  `json:"value"`
	IsAccepted  *bool    `json:"isAccepted"`
	From        float64  `json:"from"`
	To          *float64 `json:"to"`
	WaitedUntil *float64 `json:"waitedUntil"`
	raw         json.RawMessage
}

func (r *record) from() moment { return toMoment(r.From) }

// When it was over; never: nobody knows.
func (r *record) to() moment {
	if r.To == nil {
		return never
	}
	return toMoment(*r.To)
}

func toMoment(us float64) moment { return moment(math.Round(us * 1e6)) }

// A hold: how it began and, if that is known, how it ended.
type hold struct {
	acquired *record
	ended    *record
}

type history struct {
	locks         map[string][]*hold
	lockNames     []string
	registers     map[string][]*record
	registerNames []string
	// When the last fault was healed.
	healedAt moment
}

func readHistory(path string) (*history, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	run := &history{locks: map[string][]*hold{}, registers: map[string][]*record{}}
	holds := map[string]*hold{}
	var all, ends, faults []*record
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		each := &record{raw: append(json.RawMessage{}, line...)}
		if err := json.Unmarshal(line, each); err != nil {
			return nil, fmt.Errorf("line %d is no record: %w", number, err)
		}
		all = append(all, each)
		switch each.Type {
		case "acquire":
			if holds[each.Hold] != nil {
				return nil, fmt.Errorf("line %d: there are two acquisitions of hold %s", number, each.Hold)
			}
			holds[each.Hold] = &hold{acquired: each}
			run.addHold(each.Lock, holds[each.Hold])
		case "end":
			ends = append(ends, each)
		case "write", "read":
			if each.Fence == nil {
				return nil, fmt.Errorf("line %d has no fence", number)
			}
			run.addCall(each)
		case "fault":
			faults = append(faults, each)
		default:
			return nil, fmt.Errorf("line %d has the unknown type %q", number, each.Type)
		}
	}
	startAtFirst(all)
	for _, each := range faults {
		run.healedAt = max(run.healedAt, each.to())
	}
	for _, end := range ends {
		ended := holds[end.Hold]
		if ended == nil || ended.ended != nil {
			return nil, fmt.Errorf("hold %s has an end without an acquisition, or two ends", end.Hold)
		}
		ended.ended = end
	}
	return run, lines.Err()
}

// Makes all times those since the first one.
func startAtFirst(records []*record) {
	first := math.Inf(1)
	for _, each := range records {
		first = min(first, each.From)
	}
	for _, each := range records {
		each.From -= first
		for _, later := range []*float64{each.To, each.WaitedUntil} {
			if later != nil {
				*later -= first
			}
		}
	}
}

func (run *history) addHold(lock string, added *hold) {
	if run.locks[lock] == nil {
		run.lockNames = append(run.lockNames, lock)
	}
	run.locks[lock] = append(run.locks[lock], added)
}

func (run *history) addCall(call *record) {
	if run.registers[call.Register] == nil {
		run.registerNames = append(run.registerNames, call.Register)
	}
	run.registers[call.Register] = append(run.registers[call.Register], call)
}
