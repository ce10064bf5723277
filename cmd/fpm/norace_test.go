//go:build !race

package main

// memoryFactor is how many times as much memory a program may take; more with the race
// detector.
const memoryFactor = 1
