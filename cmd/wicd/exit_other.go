//go:build !windows

package main

import "os"

func exit(code int) { os.Exit(code) }
