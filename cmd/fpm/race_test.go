//go:build race

package main

// memoryFactor is how many times as much memory a program may take: with the race detector
// it has shadows of all that it touches.
const memoryFactor = 5
