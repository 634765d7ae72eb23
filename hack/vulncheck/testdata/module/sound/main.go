// Command sound is in the same module, and calls nothing of that.
package main

import (
	"fmt"
	"strings"
)

func main() { fmt.Println(strings.ToUpper("hello")) }
