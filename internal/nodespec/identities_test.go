package nodespec

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/internal/host"
)

//
func TestIdentities(t *testing.T) {
	in := azureInputs()
	spec := mustMake(t, in)
	table := IdentityTable()
	t.Run("who speaks with the API server stands in the table, and nobody else does", func(t *testing.T) {
		for _, service := range spec.Services {
			// The agent reads its files again for each write of its condition.
			client := slices.Contains(service.RestartOn, apiServerCAFile) || service.Name == ServiceAgent
			if inTable := slices.ContainsFunc(table, func(i ServiceIdentity) bool {
				return i.Service == service.Name
			}); client != inTable {
				t.Errorf("%s reads a client's files: %v; stands in the table: %v", service.Name, client, inTable)
			}
		}
	})
	t.Run("every kubeconfig leads to the internal API server by a certificate that rotates", func(t *testing.T) {
		for path, service := range map[string]string{kubeconfigFile: ServiceKubelet, cloudNodeManagerKubeconfig: ServiceCloudNodeManager} {
			config, err := clientcmd.Load([]byte(fileAt(t, spec, path).Content))
			if err != nil {
				t.Fatal(err)
			}
			context := config.Contexts[config.CurrentContext]
			user := config.AuthInfos[context.AuthInfo]
			want := newIdentity(in, service).Path(CurrentCertificate)
			if config.Clusters[context.Cluster].Server != "https://api-int.lab.example.com:6443" || user.ClientCertificate != want || user.ClientKey != want || user.Token != "" {
				t.Errorf("%s: %+v", path, user)
			}
		}
	})
	t.Run("cloud-node-manager has its own certificate and waits for it", func(t *testing.T) {
		want := Identity{
			Name: "cloud-node-manager", Directory: `C:\k\cloud-node-manager\pki`,
			CommonName: "system:cloud-node-manager:winworker-x2k4f", Organization: "system:cloud-node-managers",
		}
		if !slices.Contains(spec.Identities, want) {
			t.Errorf("%+v", spec.Identities)
		}
		i := slices.IndexFunc(spec.Services, func(s Service) bool { return s.Name == "cloud-node-manager" })
		if needs := spec.Services[i].Needs; !slices.Equal(needs, []Need{NeedCertificateOf("cloud-node-manager")}) {
			t.Errorf("it needs %v", needs)
		}
	})
	t.Run("the agent goes by the kubelet's certificate: no other service but Azure's has one of its own", func(t *testing.T) {
		for _, platform := range []string{"None", "BareMetal", "VSphere", "Nutanix", "AWS", "GCP"} {
			if spec := mustMake(t, platformInputs(platform)); len(spec.Identities) > 0 {
				t.Errorf("%s: %+v", platform, spec.Identities)
			}
		}
		if agent, kubelet := identityOf(ServiceAgent), identityOf(ServiceKubelet); agent.User != kubelet.User || agent.Directory != kubelet.Directory {
			t.Errorf("%+v", agent)
		}
	})
	t.Run("keys lie where only SYSTEM and administrators look", func(t *testing.T) {
		for _, line := range table {
			if !slices.Contains(spec.Directories, Directory{line.Directory, host.AccessAdministrators}) {
				t.Errorf("%s is open to others", line.Directory)
			}
		}
	})
	t.Run("each line says its rights", func(t *testing.T) {
		for _, line := range table {
			if line.Rights == "" || !strings.HasSuffix(line.User, ":"+nodePlaceholder) || line.Group == "" {
				t.Errorf("%+v", line)
			}
		}
	})
}
