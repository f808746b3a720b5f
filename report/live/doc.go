// Package live reads from a cluster what a lock says should be there: the
// objects that were rendered, the pods of a workload, custom resources.
//
// It only ever reads. What the API server does not permit, does not know or
// cannot hand out is an answer about that object and no failure; only a cluster
// that does not answer at all is. A kind that is asked for several times is
// listed in pages by quayside's label, what such a list leaves out is fetched by
// name, and a bounded number of requests is in flight. What Secrets and
// ConfigMaps hold is not fetched. Credentials of the kubeconfig go to its server
// and nowhere else, and appear in no message.
//
// Start from [Open], [Cluster.Read] and [Cluster.List].
package live
