package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server is port 10250.
type server struct {
	k        *kubelet
	pods     *podTable
	identity *identity
	serving  *serving
	listener net.Listener
	http     *http.Server
}

// openServer opens the port, so that a kubelet fails at the start if the port is in use.
func (k *kubelet) openServer(ctx context.Context, identity *identity, serving *serving, pods *podTable) (*server, error) {
	listener, err := k.Process.Machine.Listen(k.config.port)
	if err != nil {
		return nil, fmt.Errorf("failed to listen and serve on port %d: %w", k.config.port, err)
	}
	s := &server{k: k, pods: pods, identity: identity, serving: serving}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", k.serveHealthz)
	mux.HandleFunc("GET /pods", s.listPods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveContainerLogs)
	mux.HandleFunc("GET /logs/{path...}", s.serveNodeLogs)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	s.http = &http.Server{
		Handler:           s.withAuthorization(mux),
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(logWriter{k}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	s.listener = tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		ClientAuth:     tls.RequestClientCert,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.currentCertificate() },
	})
	return s, nil
}

// run serves until ctx is done.
func (s *server) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		s.k.errorf("Failed to serve: %v", err)
	}
}

// withAuthorization accepts a request with a client certificate of the cluster's CA if the API server authorizes the
// user.
func (s *server) withAuthorization(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, groups, err := s.authenticateRequest(r)
		if err != nil {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if s.k.config.authorize {
			allowed, err := s.isAuthorized(r, user, groups)
			if err != nil {
				s.k.errorf("Authorization error: user=%s: %v", user, err)
				http.Error(w, "Authorization error", http.StatusInternalServerError)
				return
			}
			if !allowed {
				http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=%s)", user, "get",
					nodeSubresource(r)), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) authenticateRequest(r *http.Request) (user string, groups []string, err error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || s.k.config.clientCA == nil {
		if s.k.config.anonymous {
			return "system:anonymous", []string{"system:unauthenticated"}, nil
		}
		return "", nil, errors.New("no client certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	leaf := r.TLS.PeerCertificates[0]
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: s.k.config.clientCA, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return leaf.Subject.CommonName, append(leaf.Subject.Organization, "system:authenticated"), err
}

func (s *server) isAuthorized(r *http.Request, user string, groups []string) (bool, error) {
	review, err := s.k.client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(),
		&authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, Groups: groups,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "get", Version: "v1", Resource: "nodes", Subresource: nodeSubresource(r), Name: s.k.config.nodeName,
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func nodeSubresource(r *http.Request) string {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/healthz":
		return "healthz"
	case "/pods":
		return "pods"
	case "/metrics":
		return "metrics"
	default:
		if strings.HasPrefix(path, "/logs") {
			return "log"
		}
		return "proxy"
	}
}

func (s *server) listPods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.pods.list()}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		s.k.errorf("Failed to write the pod list: %v", err)
	}
}

// logWriter writes lines of the HTTP server to the kubelet's log.
type logWriter struct{ k *kubelet }

func (w logWriter) Write(b []byte) (int, error) {
	w.k.infof("%s", bytes.TrimSpace(b))
	return len(b), nil
}
