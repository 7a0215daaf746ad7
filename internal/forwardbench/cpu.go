package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cpu is how many seconds each process has used, as far as Linux tells.
func (p pids) cpu() (used [3]float64) {
	const ticks = 100 // a second: USER_HZ
	for i, pid := range p {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			continue
		}
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		used[i] = (user + system) / ticks
	}
	return used
}
