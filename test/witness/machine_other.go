//go:build !windows

package main

func newSubject() subject { return subject{} }
