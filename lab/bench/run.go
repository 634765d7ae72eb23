package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

// version is the operator's while it is measured.
const version = "1.0.0-bench"

// run measures everything, writes both files, and returns the summary as an error when a budget is passed.
func (o *options) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "wmco-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the payload: %w", err)
	}
	result, err := o.measure(ctx, dir)
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return errors.Join(err, o.keep(result))
	}
	result.Lines = Evaluate(result)
	if err := o.write(result); err != nil {
		return err
	}
	for _, line := range result.Lines {
		o.say("  %-12s %s: %s %s (budget %s)", line.Verdict, line.Subject, line.Measured, line.What, line.Budget)
	}
	summary := Summary(result)
	if len(Failed(result.Lines)) > 0 {
		return errors.New(summary)
	}
	o.say("%s", summary)
	return nil
}

func (o *options) say(format string, args ...any) { fmt.Fprintf(o.output, format+"\n", args...) }

// measure measures the parts, and completes them with those of an earlier run.
func (o *options) measure(ctx context.Context, dir string) (Result, error) {
	result := Result{Machine: thisMachine(), Parts: map[Part]Machine{}}
	if len(o.only) > 0 {
		if err := result.complete(o.parts, o.json); err != nil {
			return result, err
		}
	}
	o.say("making the payload")
	g, described, err := o.prepare(dir, labpayload.Options{})
	if err != nil {
		return result, err
	}
	result.Payload = described
	for _, part := range []struct {
		part    Part
		measure func() error
	}{
		{PartTransfers, func() error { return o.transfers(ctx, g, &result) }},
		{PartWhole, func() (err error) {
			result.Whole, err = o.whole(ctx, filepath.Join(dir, "whole"))
			return err
		}},
		{PartArrival, func() (err error) {
			result.Arrival, err = o.arrive(ctx, filepath.Join(dir, "payload"))
			return err
		}},
		{PartJoins, func() error { return o.joins(ctx, dir, &result) }},
		{PartFleets, func() (err error) {
			result.Fleets, err = o.measureFleets(ctx, dir)
			return err
		}},
	} {
		if !o.measures(part.part) {
			continue
		}
		machine := thisMachine()
		if err := part.measure(); err != nil {
			return result, fmt.Errorf("%s: %w", part.part, err)
		}
		result.Parts[part.part] = machine
	}
	return result, nil
}

// joins measures few hosts, at each round trip.
func (o *options) joins(ctx context.Context, dir string, result *Result) error {
	for _, hosts := range o.hosts {
		for i, latency := range o.latencies {
			s := &scenario{
				clock: o.clock, hosts: hosts, roundTrip: latency, payloadDir: filepath.Join(dir, "payload"),
				agent: o.agent, idle: o.idle,
			}
			// What must cost nothing costs nothing at any distance: it is measured once for each number of hosts.
			if err := o.play(ctx, s, i == 0, result); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	return nil
}

// prepare makes the payload that all hosts get.
func (o *options) prepare(dir string, payloadOptions labpayload.Options) (goods, Payload, error) {
	files, err := labpayload.Generate(filepath.Join(dir, "payload"), o.agent, version, payloadOptions)
	if err != nil {
		return goods{}, Payload{}, err
	}
	return sent(files, files.Components("None")) // the platform of the lab's cluster
}

// sent returns what a host gets that has none of the components.
func sent(files *payload.Payload, components []payload.Component) (g goods, described Payload, err error) {
	g.payload = files
	if g.agent, err = files.Agent(); err != nil {
		return goods{}, Payload{}, err
	}
	described.AgentBytes = g.agent.Size
	for _, component := range components {
		for _, file := range component.Files {
			g.files = append(g.files, file)
			described.Files++
			described.RawBytes += file.Size
			if component.Name != payload.ComponentAgent {
				g.others = append(g.others, file.SHA256)
			}
		}
	}
	archive, err := files.Archive(g.others)
	if err != nil {
		return goods{}, Payload{}, err
	}
	described.ArchiveBytes = archive.Size
	return g, described, archive.Close()
}

// transfers measures the way of a payload to one host: of the real one, if it was made.
func (o *options) transfers(ctx context.Context, g goods, result *Result) error {
	var err error
	if result.HashSpeed, err = hashSpeed(); err != nil {
		return err
	}
	result.Transferred = result.Payload
	if o.realPayload() {
		files, err := payload.Load(o.payload)
		if err != nil {
			return err
		}
		result.Real, result.Patches = true, patchesOf(files.Manifest())
		if g, result.Transferred, err = sent(files, complete(files)); err != nil {
			return err
		}
	}
	for _, latency := range o.latencies {
		o.say("the payload to one host in two ways, %s round trip", latency)
		t, err := transfer(ctx, o.clock, latency, g)
		if err != nil {
			return err
		}
		result.Transfers = append(result.Transfers, t)
	}
	return nil
}

// complete returns the components of a payload that it has all files of, for whatever platform.
func complete(files *payload.Payload) []payload.Component {
	return slices.DeleteFunc(slices.Clone(files.Manifest().Components), func(c payload.Component) bool {
		return files.Missing(c.Name) != nil
	})
}

// patchesOf returns the patches of a payload with the files that they make.
func patchesOf(manifest payload.Manifest) []Patch {
	var patches []Patch
	for _, patch := range manifest.Patches {
		for _, component := range manifest.Components {
			for _, file := range component.Files {
				if file.SHA256 == patch.To {
					patches = append(patches, Patch{File: file.Path, FileBytes: file.Size, PatchBytes: patch.Size})
				}
			}
		}
	}
	return patches
}

// whole measures one host with a payload of the real size.
func (o *options) whole(ctx context.Context, dir string) (*Whole, error) {
	o.say("1 host, a payload of the real size")
	_, described, err := o.prepare(dir, labpayload.Options{SizePercent: labpayload.RealSizePercent})
	if err != nil {
		return nil, err
	}
	result := Result{}
	s := &scenario{clock: o.clock, hosts: 1, payloadDir: filepath.Join(dir, "payload"), agent: o.agent, idle: o.idle}
	if err := o.play(ctx, s, false, &result); err != nil {
		return nil, err
	}
	return &Whole{Payload: described, Join: result.Joins[0]}, nil
}

// play measures one scenario.
func (o *options) play(ctx context.Context, s *scenario, quiet bool, result *Result) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit+o.idle,
		fmt.Errorf("it took longer than %s; --limit may be raised", o.limit))
	defer cancel()
	o.say("%s", s)
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	join, err := s.join(ctx)
	if err != nil {
		return err
	}
	o.say("  Ready after %.1f s", join.Seconds)
	result.Joins = append(result.Joins, join)
	if !quiet {
		return nil
	}
	for _, happen := range []func(context.Context) (Quiet, error){s.leftAlone, s.lookAgain, s.restarted, s.upgraded} {
		q, err := happen(ctx)
		if err != nil {
			return err
		}
		o.say("  %s: %d reconciles, %d connections, %d API writes", q.Occasion, q.Reconciles, q.All.Connections, q.Writes)
		result.Quiets = append(result.Quiets, q)
	}
	return nil
}

// write writes both files.
func (o *options) write(result Result) error {
	return errors.Join(o.keep(result), save(o.markdown, []byte(Markdown(result))))
}

// keep writes all numbers: also of a run that has failed, so that only the rest is to be measured again.
func (o *options) keep(result Result) error {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	return save(o.json, append(data, '\n'))
}

func save(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
