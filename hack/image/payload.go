package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// readPayload loads the payload and reads all of it, because the content of an image cannot be repaired on a
// cluster.
func readPayload(o options) (*payload.Payload, error) {
	p, err := payload.Load(o.payload)
	if err != nil {
		return nil, fmt.Errorf("%w (`make payload` builds one)", err)
	}
	if v := p.Manifest().Version; v != o.version {
		return nil, fmt.Errorf("the payload in %s is of version %s, and the operator of version %s: build it again with "+
			"`make payload`", o.payload, v, o.version)
	}
	if err := refuseGaps(p, strings.Fields(o.allowMissing)); err != nil {
		return nil, fmt.Errorf("the payload in %s: %w", o.payload, err)
	}
	agent, err := p.Agent()
	if err != nil {
		return nil, err
	}
	sum, err := fileDigest(o.agent)
	if err != nil {
		return nil, fmt.Errorf("the agent: %w: build it with `make build/wicd.exe`", err)
	}
	if sum != agent.SHA256 {
		return nil, fmt.Errorf("the payload in %s has another agent than %s: build it again with `make payload`, with the "+
			"same settings", o.payload, o.agent)
	}
	if err := p.Verify(); err != nil {
		return nil, fmt.Errorf("the payload in %s: %w", o.payload, err)
	}
	return p, nil
}

// refuseGaps returns an error for missing components that are not allowed to be missing, and for allowed names of
// components that exist.
func refuseGaps(p *payload.Payload, allowed []string) error {
	for _, name := range allowed {
		_, has := p.Manifest().Component(name)
		if !has && !slices.ContainsFunc(p.Gaps(), func(g payload.Gap) bool { return g.Name == name }) {
			return fmt.Errorf("ALLOW_MISSING names %s, which is not a component", name)
		}
	}
	for _, gap := range p.Gaps() {
		if !slices.Contains(allowed, gap.Name) {
			return fmt.Errorf("%w; ALLOW_MISSING=%s makes an image without it", gap.Reason, gap.Name)
		}
	}
	return nil
}
