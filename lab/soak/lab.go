package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/fakeopenshift"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
)

// Size and platform of the fleet.
const (
	listedHosts = 3
	machines    = 2
	machineSet  = "win" // short: names in Azure have at most 15 characters
	platform    = "Azure"
)

// Delays of Windows.
var vm = testenv.VMOptions{
	UserDataDelay: 20 * time.Second, FeatureDuration: 10 * time.Second, RebootDuration: 20 * time.Second, SSHDelay: 5 * time.Second,
}

// lab is a control plane with a fleet and an operator.
type lab struct {
	*testenv.Environment
	options  Options
	clock    *virtualtime.Clock
	epoch    time.Time // start of the first day
	operator *testenv.Operator
	log      *log

	signer      *fakeopenshift.Signer
	signing     <-chan error // the result of the signer
	stopSigning context.CancelFunc

	listed       []string // computer names
	release      int      // index of the operator's release
	runsByAction map[Action]int
	counted      Day // the totals at the end of the last day
	// clientAuthorities are the initial authorities for clients of kubelets; "" before the first rotation.
	clientAuthorities string
}

// newLab boots all parts and waits until the complete fleet is Ready.
func newLab(ctx context.Context, options Options) (l *lab, stop func() error, err error) {
	file, err := os.Create(filepath.Join(options.Dir, "operator.log"))
	if err != nil {
		return nil, nil, fmt.Errorf("make the operator's log: %w", err)
	}
	l = &lab{options: options, log: &log{to: file}, runsByAction: map[Action]int{}, counted: Day{}}
	// The last virtual day ends before the real day: timestamps of the API server are in the future of the
	// operator and the hosts. A certificate that is valid by the real clock has therefore not expired by the
	// virtual clock.
	l.epoch = time.Now().UTC().Add(-time.Duration(options.Days+1) * day).Truncate(day)
	l.clock = virtualtime.New(l.epoch)
	l.clock.Stride(workStride)
	l.Environment, err = testenv.New(ctx, testenv.Options{
		Hosts: hostOptions(), LinuxNodes: 1, MachineAPI: true, VM: vm, VirtualTime: l.clock,
		PayloadDir: options.Releases[0].PayloadDirectory, Version: options.Releases[0].Version,
		ControlPlane: cluster.Options{Platform: platform, APIIntURL: "https://127.0.0.1", ExternalSigner: true,
			NodeGracePeriod: nodeGracePeriod},
		Log: funcr.New(l.log.appendLine, funcr.Options{LogTimestamp: true, TimestampFormat: time.TimeOnly}),
	})
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	stop = func() error { return errors.Join(l.Close(), file.Close()) }
	if err := l.startSigner(ctx); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	stop = func() error {
		err := l.Close()
		l.stopSigning()
		return errors.Join(err, <-l.signing, file.Close())
	}
	if err := l.createFleet(ctx); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return l, stop, nil
}

// nodeGracePeriod is long: kubelets follow virtual time, which stands still while a busy machine works.
const nodeGracePeriod = 15 * time.Minute

func hostOptions() []testenv.HostOptions {
	hosts := testenv.Hosts(listedHosts)
	for i := range hosts {
		hosts[i].ShutdownDelay, hosts[i].RebootDuration, hosts[i].BootDelay = 2*time.Second, 20*time.Second, 5*time.Second
		hosts[i].FeatureDuration = vm.FeatureDuration
	}
	return hosts
}

// clientValidity is the validity of the certificates of kubelets and of OVN-Kubernetes, which client-go renews by
// the real clock. It is short because the certificate manager of an ended program keeps its memory until its
// certificate is due for renewal.
const clientValidity = 10 * time.Minute

// startSigner signs certificates instead of the controller manager.
func (l *lab) startSigner(ctx context.Context) error {
	authority, err := l.Cluster().CSRSigner()
	if err != nil {
		return err
	}
	l.signer = fakeopenshift.NewSigner(authority, clock.RealClock{}, l.certificateValidity)
	signing := make(chan error, 1)
	ctx, l.stopSigning = context.WithCancel(context.WithoutCancel(ctx))
	go func() { signing <- l.signer.Run(ctx, l.Config, slog.New(logr.ToSlogHandler(logr.Discard()))) }()
	l.signing = signing
	return nil
}

// createFleet installs the operator and creates the fleet.
func (l *lab) createFleet(ctx context.Context) error {
	if _, err := l.InstallOperator(ctx, ""); err != nil {
		return err
	}
	if err := l.CreateKey(ctx); err != nil {
		return err
	}
	policy := &v1alpha1.WindowsDisruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName},
		Spec: v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: ptr.To(intstr.FromInt32(2)),
			MaintenanceWindows: []v1alpha1.MaintenanceWindow{{
				Schedule: fmt.Sprintf("0 %d * * *", int(windowOpens.Hours())), Duration: metav1.Duration{Duration: windowDuration},
			}}},
	}
	if err := l.Client.Create(ctx, policy); err != nil {
		return err
	}
	for _, h := range l.Hosts() {
		l.listed = append(l.listed, h.Options.Name)
	}
	if err := l.ListHosts(ctx, l.listed...); err != nil {
		return err
	}
	if err := l.startOperator(); err != nil {
		return err
	}
	if err := l.WaitUserData(ctx); err != nil {
		return err
	}
	if err := l.CreateMachineSet(ctx, machineSet, machines, testenv.MachineSetOptions{}); err != nil {
		return err
	}
	return l.awaitConvergence(ctx, "the fleet is new")
}

func (l *lab) startOperator() (err error) {
	l.operator, err = l.RunOperator(testenv.WithRelease(l.options.Releases[l.release]))
	return err
}
