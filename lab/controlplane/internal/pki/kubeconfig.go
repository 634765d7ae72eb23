package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig for the API server at url with the client certificate.
func (a *Authorities) WriteKubeconfig(path, url string, client Pair) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: a.Server.CertPEM}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertPEM, ClientKeyData: client.KeyPEM}
	config.Contexts["admin"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "admin"}
	config.CurrentContext = "admin"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", path, err)
	}
	return WriteFile(path, data)
}
