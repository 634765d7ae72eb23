package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winetestenv"
)

const (
	// wineGracePeriod is the time for the cleanup of Wine hosts.
	wineGracePeriod = 40 * time.Second
	// stageInterval is the interval between checks of the preparation's progress.
	stageInterval = time.Second
)

// prepareWine prepares Wine hosts outside of the namespaces and prints the progress.
func (o *demoOptions) prepareWine() (*winetestenv.Kit, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	out := newOutput(os.Stdout)
	out.printStep("preparing Wine hosts (the first time takes some minutes)")
	type result struct {
		kit *winetestenv.Kit
		err error
	}
	done := make(chan result, 1)
	go func() {
		kit, err := winetestenv.Prepare(ctx, o.wineDir(), o.programs.wineNode)
		done <- result{kit, err}
	}()
	ticker := time.NewTicker(stageInterval)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case r := <-done:
			if ctx.Err() != nil {
				return nil, errors.New("interrupted while Wine hosts were prepared; what is finished is kept")
			}
			return r.kit, r.err
		case <-ticker.C:
			if stage := preparationStage(o.wineDir()); stage != last {
				out.printStep("%s", stage)
				last = stage
			}
		}
	}
}

// sweepWine removes the directories of hosts that were killed together with the inner process, for example by a
// second interrupt, without a chance to clean up.
func (o *demoOptions) sweepWine() error {
	_, err := wine.Prepare(context.Background(), o.wineDir()) // starts with the sweep and finds the base up to date
	return err
}

// wineDir returns the directory of Wine hosts, which tests also use.
func (o *demoOptions) wineDir() string {
	return filepath.Join(filepath.Dir(o.programs.wineNode), "wine")
}

// preparationStage returns the current stage of the preparation, derived from the files in the directory of the
// Wine hosts.
func preparationStage(dir string) string {
	for _, stage := range []struct{ pattern, text string }{
		{".wine-root-*", "making a chroot with Wine from Debian's archive"},
		{".standin-*", "compiling what Wine lacks"},
		{"hosts/base-*", "installing Windows"},
	} {
		if found, err := filepath.Glob(filepath.Join(dir, stage.pattern)); err == nil && len(found) > 0 {
			return stage.text
		}
	}
	return "compiling the programs of the hosts"
}

// generateWinePayload generates the payload for Wine hosts. The base already exists; this process acquires only its
// own locks.
func (d *demo) generateWinePayload(ctx context.Context, version string) (dir string, err error) {
	if d.kit, err = winetestenv.Prepare(ctx, d.wineDir(), d.programs.wineNode); err != nil {
		return "", err
	}
	dir = filepath.Join(d.dir, "payload")
	return dir, d.kit.Payload(dir, d.programs.agent, version, payload.Options{})
}

// bootWine boots the Wine hosts concurrently and enables logins to the first host.
func (d *demo) bootWine(ctx context.Context) error {
	all := d.hostOptions()
	d.output.printStep("booting %d Wine hosts%s", len(all),
		map[bool]string{true: ", one of them to add later"}[len(all) > d.hosts])
	d.wine = make([]*wine.Host, len(all))
	err := inParallel(all, func(i int, h testenv.HostOptions) (err error) {
		d.wine[i], err = d.kit.AddHost(ctx, d.env, wine.Options{
			Name: h.Name, Address: netip.MustParseAddr(h.Address), Users: []string{h.Username},
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.keyFile(), d.env.PrivateKey(), 0o600); err != nil {
		return fmt.Errorf("write the hosts' key for users: %w", err)
	}
	go winetestenv.Forward(d.ssh, d.wine[0].Address())
	return nil
}

// keyFile returns the path of the private key that hosts accept.
func (d *demo) keyFile() string { return filepath.Join(d.dir, "private-key.pem") }

// wineCommands returns commands for hosts with logins.
func (d *demo) wineCommands(first testenv.HostOptions) []suggestedCommand {
	login := fmt.Sprintf("ssh -i %s -p %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null %s@127.0.0.1",
		d.keyFile(), portOf(d.ssh), first.Username)
	return []suggestedCommand{
		{login + ` 'dir C:\k & tasklist'`, "any command on " + first.Name + ", as the operator runs them: cmd.exe reads it"},
		{login + ` 'del C:\k\kubelet.conf'`, "drift: the agent puts the file back within seconds"},
	}
}

func (d *demo) closeWine() error {
	err := inParallel(d.wine, func(_ int, h *wine.Host) error {
		if h == nil {
			return nil // did not boot
		}
		return h.Close()
	})
	if d.ssh != nil {
		err = errors.Join(err, d.ssh.Close())
	}
	return err
}

func portOf(listener net.Listener) string {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
