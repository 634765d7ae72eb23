package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/lab/fakepod"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// podAddresses are the addresses of the first Linux node, with Machines and without. The operator's Pod runs on
// that node.
var podAddresses = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.10")}

// serveOperatorPod enables kubectl windows to run commands in a Pod of the operator.
func (d *demo) serveOperatorPod(ctx context.Context) error {
	signer, err := d.env.Cluster().CSRSigner()
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := d.env.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list the Linux nodes: %w", err)
	}
	kubelet := fakepod.Kubelet{
		Client: d.env.Client, Namespace: testenv.Namespace, Signer: signer, Log: d.log,
		Command: func(ctx context.Context, arguments ...string) *exec.Cmd {
			return d.env.OperatorCommand(ctx, d.operatorOptions, arguments...)
		},
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if ip, err := netip.ParseAddr(address.Address); err == nil && slices.Contains(podAddresses, ip) {
				kubelet.Node, kubelet.Address = node.Name, address.Address
			}
		}
	}
	if kubelet.Node == "" {
		return fmt.Errorf("no Linux node has one of the addresses %v, on which the operator's Pod could be", podAddresses)
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- kubelet.Run(ctx, func() { close(ready) }) }()
	d.closePod = func() error {
		cancel()
		return <-ended
	}
	select {
	case <-ready:
		return nil
	case err := <-ended:
		ended <- nil // for closePod
		return errors.Join(err, ctx.Err())
	}
}
