package nodespec

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ServiceHybridOverlay is the name of the Windows service of OVN-Kubernetes' hybrid overlay.
const ServiceHybridOverlay = "hybrid-overlay-node"

// Paths and names of the hybrid overlay.
const (
	hybridOverlayDirectory = Root + `\hybrid-overlay-node`
	hybridOverlayPKI       = hybridOverlayDirectory + `\pki`

	baseHNSNetwork = "BaseOVNKubernetesHybridOverlayNetwork"
	hnsNetwork     = "OVNKubernetesHybridOverlayNetwork"
)

// hybridOverlayService creates the HNS networks of the pods after the cluster network assigned a subnet to the node.
// Source of the flags: OVN-Kubernetes, go-controller/pkg/config and hybrid-overlay/cmd/hybrid-overlay-node.
func hybridOverlayService(in Inputs, p *programs) Service {
	const name = ServiceHybridOverlay
	arguments := []string{
		p.executablePath("hybrid-overlay-node.exe"), "--node", in.Instance.NodeName,
		// The program requests its own certificate with the kubelet's certificate. OVN's identity approver refuses
		// certificates with a validity of more than a day.
		"--bootstrap-kubeconfig=" + kubeconfigFile, "--cert-dir=" + hybridOverlayPKI, "--cert-duration=24h",
		// The certificate comes without a kubeconfig, so the server must be specified again.
		"--k8s-apiserver=" + in.Cluster.APIServerInternalURL, "--k8s-cacert=" + apiServerCAFile,
		"--windows-service", "--logfile", LogPath(name),
	}
	arguments = append(arguments, in.LogSettings.lumberjackArguments()...)
	if in.Debug {
		arguments = append(arguments, "--loglevel=5")
	}
	if port := in.Cluster.Network.VXLANPort; port != nil {
		arguments = append(arguments, fmt.Sprintf("--hybrid-overlay-vxlan-port=%d", *port))
	}
	s := newService(name, arguments, ServiceKubelet)
	s.StartType = startAfterBoot
	s.Environment = directEnvironment()
	s.Needs = []Need{NeedCertificate}
	s.RestartOn = clientFiles(name)
	// On start, the program recreates the HNS network if subnet or gateway differ, and otherwise the policies of
	// remote subnets.
	s.DisruptsPods = true
	return s
}

// neverRotate is a size in MiB that no log reaches. The rotation library interprets zero as the default of 100.
const neverRotate = 1 << 20

// lumberjackArguments returns the log flags of OVN-Kubernetes, which rotates its log with
// gopkg.in/natefinch/lumberjack: the size is in MiB, the age in days, and zero keeps rotated files forever. As for
// the other services, the number of rotated files is not limited.
func (s LogSettings) lumberjackArguments() []string {
	size := int64(neverRotate)
	if bytes := s.fileSizeBytes(); bytes > 0 {
		size = min(max(1, bytes>>20), neverRotate)
	}
	days := int(math.Ceil(s.FileAge.Hours() / (24 * time.Hour).Hours()))
	return []string{
		"--logfile-maxsize=" + strconv.FormatInt(size, 10), "--logfile-maxage=" + strconv.Itoa(days),
		"--logfile-maxbackups=0",
	}
}
