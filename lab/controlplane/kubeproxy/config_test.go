// Package kubeproxy verifies that kube-proxy of this version interprets its configuration file as the operator
// intends. The files are the golden files of internal/nodespec, completed as the agent does.
package kubeproxy

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/proxy/apis/config"
	"k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	"k8s.io/kubernetes/pkg/proxy/apis/config/validation"
)

//
func TestConfig_AcceptedByKubeProxy(t *testing.T) {
	paths, err := filepath.Glob("../../../internal/nodespec/testdata/*/kube-proxy.conf")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files; %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			filled := strings.NewReplacer("${POD_SUBNET}", "10.132.0.0/23", "${SOURCE_VIP}", "10.132.0.9").Replace(string(data))
			// The decoder is strict and sets defaults. kube-proxy itself falls back to a lenient decoder, with
			// a warning in its log.
			object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(filled), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			decoded := object.(*config.KubeProxyConfiguration)
			if decoded.Mode != config.ProxyModeKernelspace {
				t.Errorf("the mode is %q", decoded.Mode)
			}
			if runtime.GOOS != "windows" {
				decoded.Mode = "" // validation only knows the modes of its own system
			}
			if errs := validation.Validate(decoded); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if w := decoded.Winkernel; !w.EnableDSR || w.SourceVip != "10.132.0.9" ||
				w.NetworkName != "OVNKubernetesHybridOverlayNetwork" {
				t.Errorf("%+v", w)
			}
		})
	}
}
