// Command vulnerable calls what the database of the test knows to be vulnerable.
package main

import (
	"fmt"
	"strings"
)

func main() { fmt.Println(greeting()) }

func greeting() string { return strings.ToTitle("hello") }
