//go:build !windows

package main

func machine() subject { return subject{} }
