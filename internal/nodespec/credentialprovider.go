package nodespec

import "strings"

const (
	credentialProviderFile = Root + `\credential-provider-config.yaml`
	// ecrProvider is the program's name without its ending: the kubelet of Windows adds .exe by itself. Source:
	// k8s.io/kubernetes, pkg/credentialprovider/plugin/plugin.go, which finds it by exec.LookPath.
	ecrProvider = "ecr-credential-provider"
)

// credentialProviderArguments make the kubelet get passwords for Amazon's registry from the instance's role.
func credentialProviderArguments(p *programs) []string {
	program := p.path(ecrProvider + ".exe")
	folder := program[:max(0, strings.LastIndexByte(program, '\\'))]
	return []string{"--image-credential-provider-config=" + credentialProviderFile,
		"--image-credential-provider-bin-dir=" + folder}
}

// credentialProviderFiles are for AWS only. The machine config operator's file for Linux nodes names the same images, so
// both kinds of nodes use the role for the same names of Amazon's registry; *.dkr-ecr.*.on.aws is not one of them.
func credentialProviderFiles(in Inputs) []File {
	if in.Cluster.Platform != platformAWS {
		return nil
	}
	return []File{inherited(credentialProviderFile, encode(object{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": []object{{
			"name": ecrProvider, "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
			"defaultCacheDuration": "12h",
			"matchImages": []string{
				"*.dkr.ecr.*.amazonaws.com",
				"*.dkr.ecr.*.amazonaws.com.cn",
				"*.dkr.ecr-fips.*.amazonaws.com",
				"*.dkr.ecr.us-iso-east-1.c2s.ic.gov",
				"*.dkr.ecr.us-isob-east-1.sc2s.sgov.gov",
			},
		}},
	}))}
}
