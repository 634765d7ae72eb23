package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// node is a node of a script's syntax tree.
type node struct {
	// kind is the grammar's name of the node, or the text of a token.
	kind string
	// fault is empty, or describes the fault: an unexpected text, or a missing element.
	fault      string
	named      bool
	start, end int // in bytes
	children   []*node
}

//go:embed grammar/powershell.wasm.gz
var compressed []byte

// parser runs the grammar.
type parser struct {
	runtime wazero.Runtime
	module  api.Module
}

// newParser starts the grammar's virtual machine, which takes about a second. It has no files, network or clock.
func newParser(ctx context.Context) (*parser, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	binary, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	p := &parser{runtime: wazero.NewRuntime(ctx)}
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err == nil {
		p.module, err = p.runtime.InstantiateWithConfig(ctx, binary,
			wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the grammar: %w", err), p.close(ctx))
	}
	return p, nil
}

func (p *parser) close(ctx context.Context) error { return p.runtime.Close(ctx) }

// parse returns the tree of a script, including the faults.
func (p *parser) parse(ctx context.Context, script []byte) (*node, error) {
	text := append(script[:len(script):len(script)], 0)
	place, err := p.module.ExportedFunction("allocate").Call(ctx, uint64(len(text)))
	if err != nil {
		return nil, fmt.Errorf("allocate memory in the grammar: %w", err)
	}
	if place[0] == 0 || !p.module.Memory().Write(uint32(place[0]), text) {
		return nil, errors.New("the grammar could not allocate memory for the script")
	}
	told, err := p.module.ExportedFunction("parse").Call(ctx, place[0], uint64(len(script)))
	if err != nil {
		return nil, fmt.Errorf("parse the script: %w", err)
	}
	if told[0] == 0 {
		return nil, errors.New("parse the script: the versions of the grammar and its runtime do not match")
	}
	memory, _ := p.module.Memory().Read(uint32(told[0]), p.module.Memory().Size()-uint32(told[0]))
	list, _, _ := bytes.Cut(memory, []byte{0})
	return readTree(list)
}

// readTree parses the output of grammar/parse.c.
func readTree(list []byte) (*node, error) {
	var path []*node // from the root to the previous node
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		var depth int
		words := strings.SplitN(lines.Text(), " ", 6)
		if len(words) < 6 {
			return nil, fmt.Errorf("the grammar printed %q, which is not a node", lines.Text())
		}
		n := &node{kind: words[5], named: words[2] == "named"}
		for i, number := range map[int]*int{0: &depth, 3: &n.start, 4: &n.end} {
			var err error
			if *number, err = strconv.Atoi(words[i]); err != nil {
				return nil, fmt.Errorf("the grammar printed %q, which is not a node: %w", lines.Text(), err)
			}
		}
		if depth > len(path) {
			return nil, fmt.Errorf("the grammar printed %q, which has no parent node", lines.Text())
		}
		fault := words[1]
		if fault != "-" {
			n.fault = fault
		}
		if path = path[:depth]; depth > 0 {
			path[depth-1].children = append(path[depth-1].children, n)
		}
		path = append(path, n)
	}
	if len(path) == 0 {
		return nil, errors.New("the grammar printed nothing")
	}
	return path[0], lines.Err()
}
