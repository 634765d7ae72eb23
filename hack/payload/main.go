// Command payload builds the programs for Windows nodes. It cross-compiles the components of
// payload/components.yaml from Go modules. It checks each executable and the version that the executable reports,
// and writes manifest, store and a report. The use by `make payload` and `make payload-reproducible` is described
// in docs/payload.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/hack/cliutil"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// options contains the flags.
type options struct {
	table, modules string
	output, bin    string
	components     string
	minors         string
	executables    string
	agent, version string
	external       string
	release        string
	mirrors        string
	source         string
	sourceSum      string
	allowMissing   string
	previous       string
	wine           string
	reproducible   bool
	scratch        string
	secondCache    string
}

func parseFlags(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("payload", flag.ContinueOnError)
	flags.StringVar(&o.table, "table", "payload/components.yaml", "`file` that lists the components")
	flags.StringVar(&o.modules, "modules", "payload", "`folder` of the modules that executables are built from")
	flags.StringVar(&o.output, "output", "build/payload", "`folder` for manifest, store and report")
	flags.StringVar(&o.bin, "bin", "build/payload-bin", "`folder` for executables")
	flags.StringVar(&o.components, "components", "", "`names` of components to build, with spaces between; none: all")
	flags.StringVar(&o.minors, "minors", "",
		"minor `versions` of Kubernetes to build kubelet and kube-proxy for, with spaces between; none: all that the operator serves")
	flags.StringVar(&o.executables, "executables", "",
		"`names` of executables to build into -bin, with spaces between; no payload is written then")
	flags.StringVar(&o.agent, "agent", "build/wicd.exe", "`file` that is the agent, built already")
	flags.StringVar(&o.version, "version", "", "`version` of the operator and the agent")
	flags.StringVar(&o.external, "external", "", "`file` that lists external components")
	flags.StringVar(&o.release, "release", "",
		"release `images` of OpenShift that have the external components: references or folders with an OCI layout, with spaces between")
	flags.StringVar(&o.mirrors, "mirrors", "", "`file` with an ImageDigestMirrorSet for the images of -release")
	flags.StringVar(&o.source, "source", "",
		"`folder` or archive with the sources of OVN-Kubernetes, to build the external component from")
	flags.StringVar(&o.sourceSum, "source-sum", "", "`sum` that -source must have")
	flags.StringVar(&o.allowMissing, "allow-missing", "",
		"`names` of external components that the payload need not have, with spaces between")
	flags.StringVar(&o.previous, "previous", "", "`folders` of earlier payloads to make patches from, with spaces between")
	flags.StringVar(&o.wine, "wine", "hack/wine-run", "`command` that runs a Windows program")
	flags.BoolVar(&o.reproducible, "reproducible", false,
		"build in two other folders, one with an empty cache, and only compare")
	flags.StringVar(&o.scratch, "scratch", "build/payload-reproducible", "`folder` for -reproducible; it is emptied")
	flags.StringVar(&o.secondCache, "second-cache", "",
		"build `cache` of the second build of -reproducible; none: an empty one")
	return o, cliutil.ParseFlags(flags, arguments)
}

func main() {
	cliutil.Program[options]{Name: "payload", Parse: parseFlags, Run: run}.Main()
}

func run(ctx context.Context, o options, log io.Writer) error {
	line := support.CurrentLine()
	table, err := ReadTable(o.table, line.KubernetesMinors())
	if err != nil {
		return err
	}
	selected, err := table.Select(strings.Fields(o.components), strings.Fields(o.minors))
	if err != nil {
		return err
	}
	if o.reproducible {
		return compareBuilds(ctx, o, selected, log)
	}
	if names := strings.Fields(o.executables); len(names) > 0 {
		return buildExecutables(ctx, newBuilder(ctx, o, log), selected, names)
	}
	externals, err := collectExternals(ctx, o, table, log)
	if err != nil {
		return err
	}
	if o.components == "" {
		if err := refuseMissing(selected, externals, line.KubernetesMinors(), strings.Fields(o.allowMissing)); err != nil {
			return err
		}
	}
	earlier, err := loadEarlier(o)
	if err != nil {
		return err
	}
	agent, err := agentSource(o.agent, o.version)
	if err != nil {
		return err
	}
	build := payload.Build{Version: o.version, WindowBytes: windowBytes,
		Components: []payload.Source{agent}, Earlier: earlier}
	builder := newBuilder(ctx, o, log)
	if err := compareFlags(ctx, builder, table.Components, externals); err != nil {
		return err
	}
	var all []Built
	for _, c := range table.Components {
		switch list := externals[c.Name]; {
		case len(list) > 0:
			for _, external := range list {
				build.Components = append(build.Components, external.newSource(c))
			}
			if missing := externals.missingMinors(c.Name, line.KubernetesMinors()); len(missing) > 0 {
				build.Absent = append(build.Absent, payload.Absent{Name: c.Name, Minors: missing, Reason: c.reasonOfAbsence()})
			}
		case c.External != "" || !slices.ContainsFunc(selected, func(w Component) bool { return w.String() == c.String() }):
			build.Absent = append(build.Absent, payload.Absent{Name: c.Name, Minors: c.Minors, Reason: c.reasonOfAbsence()})
		default:
			list, err := builder.Component(ctx, c)
			if err != nil {
				return err
			}
			all = append(all, list...)
			build.Components = append(build.Components, c.newSource(list))
		}
	}
	return write(o, build, all, externals, log)
}

// collectExternals returns the components that are not built here: the listed components, and the components of a
// release.
func collectExternals(ctx context.Context, o options, table Table, log io.Writer) (externalsByName, error) {
	externals, err := readExternals(o.external, table)
	if err != nil {
		return nil, err
	}
	if err := fromRelease(ctx, o, table, externals, log); err != nil {
		return nil, err
	}
	return externals, fromSource(ctx, o, table, externals, log)
}

// buildExecutables builds and checks some executables for a payload.
func buildExecutables(ctx context.Context, builder Builder, components []Component, names []string) error {
	for _, name := range names {
		found := false
		for _, c := range components {
			only := slices.DeleteFunc(slices.Clone(c.Executables), func(e Executable) bool { return e.Output != name })
			if len(only) == 0 {
				continue
			}
			found, c.Executables = true, only
			if _, err := builder.Component(ctx, c); err != nil {
				return err
			}
		}
		if !found {
			return fmt.Errorf("no component has an executable %q", name)
		}
	}
	return nil
}

// reasonOfAbsence is for the administrator of a cluster with this payload.
func (c Component) reasonOfAbsence() string {
	if c.External != "" {
		return fmt.Sprintf("%s (%s) is not built from a Go module, and nobody brought it when the payload was built: build it with "+
			"`make payload RELEASE=image`, `make payload EXTERNAL=list` or `make payload SOURCE=sources`, see docs/payload.md",
			c.External, strings.Join(c.Files, ", "))
	}
	if len(c.Minors) > 0 {
		return "the payload was built for other components or versions of Kubernetes only: build it with `make payload`, for all"
	}
	return "the payload was built for other components only: build it with `make payload`, for all"
}

func newBuilder(ctx context.Context, o options, log io.Writer) Builder {
	builder := Builder{Modules: o.modules, Bin: o.bin, Log: log}
	runner, err := newWine(ctx, o.wine)
	if err != nil {
		builder.NoRunnerReason = err
		fmt.Fprintf(log, "executables are not asked for their version: %v\n", err)
	} else {
		builder.Runner = runner
	}
	return builder
}

// windowBytes allows all Kubernetes executables to share their common parts. The host needs about as much memory to
// unpack.
const windowBytes = 128 << 20

func loadEarlier(o options) ([]*payload.Payload, error) {
	var list []*payload.Payload
	for _, dir := range strings.Fields(o.previous) {
		if isSameDirectory(dir, o.output) {
			return nil, fmt.Errorf("the earlier payload in %s would be overwritten by this one: copy it to another folder first",
				dir)
		}
		p, err := payload.Load(dir)
		if err != nil {
			return nil, fmt.Errorf("an earlier payload to make patches from: %w", err)
		}
		list = append(list, p)
	}
	return list, nil
}

func isSameDirectory(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// write writes the payload and its report.
func write(o options, build payload.Build, all []Built, externals externalsByName, log io.Writer) error {
	fmt.Fprintln(log, "compressing, and measuring what a host would be sent")
	p, err := payload.Write(o.output, build)
	if err != nil {
		return err
	}
	if err := payload.Prune(o.output); err != nil {
		return err
	}
	report, err := newReport(p, all, build, externals)
	if err != nil {
		return err
	}
	if err := report.write(o.output); err != nil {
		return err
	}
	fmt.Fprint(log, report.formatReport())
	fmt.Fprintf(log, "manifest, store and report are in %s\n", filepath.Clean(o.output))
	return nil
}
