//go:build windows

// Command refuse replaces programs without function in Wine. Instead of exiting with code 0 and no effect, it
// fails visibly and records the call.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// record receives one JSON line per call. lab/wine reads it.
const record = `C:\lab\refused.jsonl`

func main() {
	call := struct {
		CommandLine string   `json:"commandLine"`
		Args        []string `json:"args"`
	}{windows.UTF16PtrToString(syscall.GetCommandLine()), os.Args}
	if err := write(call); err != nil {
		fmt.Fprintf(os.Stderr, "write to %s: %v\r\n", record, err)
	}
	fmt.Fprintf(os.Stderr, "this host is no real Windows and has no %s: product code must use Windows' API\r\n",
		os.Args[0])
	os.Exit(87) // ERROR_INVALID_PARAMETER: programs of Windows do not return this code by accident
}

func write(call any) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
