// Command vulnerable calls a function that the test's database lists as vulnerable.
package main

import (
	"fmt"
	"strings"
)

func main() { fmt.Println(greeting()) }

func greeting() string { return strings.ToTitle("hello") }
