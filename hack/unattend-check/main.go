// Command unattend-check checks an answer file for Sysprep before a golden image is created (docs/vsphere.md):
//
//	go run ./hack/unattend-check my-unattend.xml
package main

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 0 for a file without faults, 1 for a file with faults, and 2 if no file was named.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "Usage: go run ./hack/unattend-check <unattend.xml>")
		return 2
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "unattend-check:", err)
		return 1
	}
	problems := checkAnswerFile(data)
	for _, problem := range problems {
		fmt.Fprintf(stderr, "%s: %s\n", args[0], problem)
	}
	if len(problems) > 0 {
		return 1
	}
	fmt.Fprintf(stdout, "%s: no problems found\n", args[0])
	return 0
}
