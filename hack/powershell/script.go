package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// fault is a fault in a script.
type fault struct {
	line int
	text string
}

// script is a parsed script.
type script struct {
	text   []byte
	root   *node
	faults []fault
}

// check returns the faults of a script, by line.
func (p *parser) check(ctx context.Context, content []byte) ([]fault, error) {
	s, err := p.read(ctx, content)
	if err != nil {
		return nil, err
	}
	s.checkSyntax()
	if len(s.faults) == 0 { // commands in a broken tree are unreliable
		s.checkCommands()
		s.checkVariables()
		s.checkTypes()
	}
	slices.SortStableFunc(s.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	return s.faults, nil
}

func (p *parser) read(ctx context.Context, content []byte) (*script, error) {
	text, err := unwrap(content)
	if err != nil {
		return nil, err
	}
	root, err := p.parse(ctx, text)
	if err != nil {
		return nil, err
	}
	return &script{text: text, root: root}, nil
}

// unwrap removes the tags that EC2Launch requires around a script. Line numbers are unchanged.
func unwrap(content []byte) ([]byte, error) {
	const open, end = "<powershell>\n", "</powershell>\n<persist>true</persist>\n"
	inner, tagged := bytes.CutPrefix(content, []byte(open))
	if !tagged {
		return content, nil
	}
	inner, ended := bytes.CutSuffix(inner, []byte(end))
	if !ended {
		return nil, fmt.Errorf("it begins with %q and does not end with %q", open, end)
	}
	return append([]byte("\n"), inner...), nil
}

func (s *script) of(n *node) string { return string(s.text[n.start:n.end]) }

func (s *script) fault(n *node, format string, arguments ...any) {
	line := 1 + bytes.Count(s.text[:n.start], []byte("\n"))
	s.faults = append(s.faults, fault{line, fmt.Sprintf(format, arguments...)})
}

// all returns the nodes of some kinds, in the order of the script.
func (n *node) all(kinds ...string) []*node {
	var found []*node
	if slices.Contains(kinds, n.kind) {
		found = append(found, n)
	}
	for _, child := range n.children {
		found = append(found, child.all(kinds...)...)
	}
	return found
}

// child returns the first child of some kinds, or nil.
func (n *node) child(kinds ...string) *node {
	i := slices.IndexFunc(n.children, func(c *node) bool { return slices.Contains(kinds, c.kind) })
	if i < 0 {
		return nil
	}
	return n.children[i]
}

// newerOperators lists operators that Windows PowerShell 5.1, which every Windows Server has, does not support.
var newerOperators = []string{"&&", "||", "??", "??=", "?.", "?["}

// checkSyntax reports text that the grammar rejects, and text that the grammar accepts although PowerShell does
// not.
func (s *script) checkSyntax() {
	var visit func(*node)
	visit = func(n *node) {
		switch {
		case n.fault == "missing":
			s.fault(n, "%q is missing", n.kind)
		case n.fault != "":
			s.fault(n, "this is not PowerShell: %s", firstLine(s.of(n)))
		case slices.Contains(newerOperators, n.kind) || n.kind == "pipeline_chain_tail":
			s.fault(n, "Windows PowerShell 5.1 does not know the operator %s", s.of(n))
		case n.kind == "try_statement" && n.child("catch_clauses") == nil && n.child("finally_clause") == nil:
			s.fault(n, "a try needs a catch or a finally")
		case n.kind == "expandable_string_literal":
			s.checkColons(n)
		}
		for _, child := range n.children {
			visit(child)
		}
	}
	visit(s.root)
}

// checkColons reports "$Name: text": PowerShell treats the colon as a part of the variable name, as in $env:TEMP.
func (s *script) checkColons(text *node) {
	for _, n := range text.all("variable") {
		if n.child("braced_variable") == nil && n.end < len(s.text) && s.text[n.end] == ':' &&
			!strings.Contains(s.of(n), ":") {
			s.fault(n, "PowerShell reads the colon as part of the name %s: put the name in braces", s.of(n))
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
