// Command fpm checks, merges and simulates the artifacts of self-benchmark runs: one JSON
// file per data-parallel rank, which hold forward-pass metrics and the evidence for them.
//
// This package is the tree of commands, one file a command, thin over the packages that
// do the work. A command is a constructor that takes the [app], and returns either an
// error or what [app.finish] makes of its report. Only main exits.
package main

import "os"

func main() { os.Exit(process()) }
