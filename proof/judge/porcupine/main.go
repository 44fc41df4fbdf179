// Judges the history of a run with Porcupine, a checker of linearizability that others wrote.
//
//	porcupine [-patience MS] [-timeout MS] FILE
//
// Reads the records of proof/history.ts, one JSON document per line. Prints one JSON document with
// a verdict for each lock and register. Ends with 0 if all are linearizable, with 1 if one is not,
// and with 2 if it could not decide or could not read the file.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

type verdict struct {
	// A lock or a register.
	Object  string `json:"object"`
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	// How many operations were judged, and in how many parts.
	Operations int `json:"operations"`
	Parts      int `json:"parts"`
	// Each part that is not linearizable, with the records at fault.
	Faults []fault `json:"faults,omitempty"`
}

type fault struct {
	Records []json.RawMessage `json:"records"`
}

const (
	linearizable = "linearizable"
	violated     = "violated"
	undecided    = "undecided"
)

type report struct {
	Verdict string    `json:"verdict"`
	Objects []verdict `json:"objects"`
}

func main() {
	patienceMs := flag.Float64("patience", 10_000, "a free lock goes to a waiter within so many ms")
	timeoutMs := flag.Float64("timeout", 60_000, "undecided after so many ms for each object")
	flag.Parse()
	if flag.NArg() != 1 {
		fail("usage: porcupine [-patience MS] [-timeout MS] FILE")
	}
	run, err := readHistory(flag.Arg(0))
	if err != nil {
		fail(err.Error())
	}
	timeout := time.Duration(*timeoutMs * float64(time.Millisecond))
	result := judge(run, moment(*patienceMs*1e9), timeout)
	printed, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		fail(err.Error())
	}
	fmt.Println(string(printed))
	os.Exit(map[string]int{linearizable: 0, violated: 1, undecided: 2}[result.Verdict])
}

func judge(run *history, patience moment, timeout time.Duration) report {
	result := report{Verdict: linearizable, Objects: []verdict{}}
	for _, name := range run.lockNames {
		parts := lockParts(run.locks[name], run.healedAt, patience)
		result.Objects = append(result.Objects, check("lock", name, parts, timeout))
	}
	for _, name := range run.registerNames {
		parts := registerParts(run.registers[name])
		result.Objects = append(result.Objects, check("register", name, parts, timeout))
	}
	for _, each := range result.Objects {
		if each.Verdict == violated || result.Verdict == linearizable {
			result.Verdict = each.Verdict
		}
	}
	return result
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
