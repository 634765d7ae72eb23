// Command sound is in the same module, and calls no vulnerable function.
package main

import (
	"fmt"
	"strings"
)

func main() { fmt.Println(strings.ToUpper("hello")) }
