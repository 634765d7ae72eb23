package main

// exceptions are vulnerabilities that are let pass, by the identifier in Go's database, each with the reason why it
// does not concern us and what must happen for it to go. There are none.
var exceptions = map[string]string{}
